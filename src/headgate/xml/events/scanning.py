"""Hot loop: the bytes of a document to arrays.

It reads what is well-formed, without a DOCTYPE, and finds out about limits; it does not judge. Of what is not
well-formed it makes something, or says that it cannot, and never reads past the end: the parser judges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.xml.events.document import BEGINS, ENDS, LABELS, LEVELS, PARENTS, STOPS
from headgate.xml.events.tokens import NameTable, behind, blank_end, declares, intern, name_end, reference

if TYPE_CHECKING:
    from headgate.core.arrays import Bytes, Ints, Ints32

# What became of it; from DOCTYPE on it is refused, whatever the parser says.
READ = 0
STRANGE = 1
"""Not read: it is not well-formed, as far as this loop can tell."""
DOCTYPE = 2
ENTITY = 3
DEEP = 4
ATTRIBUTES = 5
CHILDREN = 6
NODES = 7
NAMES = 8
TEXT = 9

ELEMENT_NAME = 0
ATTRIBUTE_NAME = 1
NO_NAME = 2
"""The kind of the label of texts."""

_LESS, _GREATER, _SLASH, _EQUALS, _AND = b"<>/=&"
_EXCLAMATION, _DASH, _OPEN, _CLOSE, _QUESTION = b"!-[]?"
_QUOTE, _APOSTROPHE, _BLANK, _TAB, _NEWLINE, _RETURN = b"\"' \t\n\r"
_CDATA, _COMMENT = len("<![CDATA["), len("<!--")

_NODES, _SCOPED, _DECLARED, _NAMED, _LENGTH = range(5)
"""What is counted in all."""


class ScanResult(NamedTuple):
    """What the loop found. The first `nodes` of each array are filled; `place` is where it was refused.

    Name number n is the bytes from name_starts[n] to name_stops[n], prefix included. `declared` counts
    declarations of namespaces, `scoped` those below the root element: with these, one name can mean several
    labels.
    """

    status: int
    place: int
    nodes: int
    scoped: int
    declared: int
    text: Bytes
    name_starts: Ints32
    name_stops: Ints32
    name_kinds: Bytes
    labels: Ints32
    parents: Ints32
    ends: Ints32
    levels: Ints32
    begins: Ints32
    stops: Ints32


def scan(
    data: Bytes, room: int, depth: int, attributes: int, children: int, nodes: int, names: int, text: int
) -> ScanResult:
    """Read a document; `room` is the number of nodes that it cannot have more of."""
    most = min(room, nodes)
    columns_of_nodes = np.empty((STOPS + 1, most), np.int32)
    size = max(1, min(names + 1, most))  # that of texts is no name of theirs
    slots = 16
    while slots < 2 * size:
        slots *= 2
    name_starts, name_stops = np.empty((2, size), np.int32)
    name_kinds = np.empty(size, np.uint8)
    table = NameTable(
        np.zeros(slots, np.int32), np.empty(size, np.uint64), name_starts, name_stops, name_kinds
    )
    texts, values = np.empty(len(data), np.uint8), np.empty(len(data), np.uint8)
    totals = np.zeros(_LENGTH + 1, np.int64)
    status, offset = _scan(
        data,
        columns_of_nodes,
        texts,
        values,
        table,
        np.empty((2, depth), np.int32),
        attributes,
        children,
        text,
        totals,
    )
    count, scoped, declared, named, length = totals.tolist()
    if status <= STRANGE and named > names and NO_NAME not in name_kinds[:named]:
        status, offset = NAMES, len(data)
    columns = columns_of_nodes[:, :count].copy()
    return ScanResult(
        status,
        offset,
        count,
        scoped,
        declared,
        texts[:length].copy(),
        name_starts[:named],
        name_stops[:named],
        name_kinds[:named],
        *columns,
    )


@bare_inner
def _closes(data: Bytes, at: int) -> bool:
    """Tell whether a section of characters ends at a place: ]]> stands there."""
    if at + 2 >= len(data) or data[at] != _CLOSE:
        return False
    return bool(data[at + 1] == _CLOSE and data[at + 2] == _GREATER)


@bare
def _scan(
    data: Bytes,
    columns: Ints32,
    texts: Bytes,
    values: Bytes,
    table: NameTable,
    stack: Ints32,
    attributes: int,
    children: int,
    most_text: int,
    totals: Ints,
) -> tuple[int, int]:
    """Fill the arrays; return status and place. Totals are nodes, scoped, declared, names, bytes of text."""
    labels, parents, ends = columns[LABELS], columns[PARENTS], columns[ENDS]
    levels, begins, stops = columns[LEVELS], columns[BEGINS], columns[STOPS]
    size, most, deepest = len(data), columns.shape[1], stack.shape[1]
    open_nodes, open_children = stack[0], stack[1]
    count = 0
    named = 0
    depth = 0
    scoped = 0
    declared = 0
    length = 0
    valued = 0
    rooted = False
    current = -1  # the text that goes on, across comments and the like
    at = 0
    while at < size:
        here = at
        if length + valued > most_text:
            return TEXT, here
        section = False
        if data[at] == _LESS:
            if at + 2 >= size:
                return STRANGE, here
            sign = data[at + 1]
            if sign == _EXCLAMATION:
                if data[at + 2] == _DASH:
                    at = behind(data, at + _COMMENT + 2, _DASH, _DASH)
                    continue
                if data[at + 2] != _OPEN:
                    return DOCTYPE, here
                section = True
                at += _CDATA
                if depth == 0:
                    return STRANGE, here
                if _closes(data, at):
                    at += 3
                    continue
            elif sign == _QUESTION:
                at = behind(data, at + 4, -1, _QUESTION)
                continue
            elif sign == _SLASH:
                if depth == 0:
                    return STRANGE, here
                depth -= 1
                ends[open_nodes[depth]] = count - 1
                stops[open_nodes[depth]] = length
                current = -1
                while at < size and data[at] != _GREATER:
                    at += 1
                at += 1
                continue
            else:
                if depth == 0 and rooted:
                    return STRANGE, here
                if depth == deepest:
                    return DEEP, here
                if depth > 0:
                    open_children[depth - 1] += 1
                    if open_children[depth - 1] > children:
                        return CHILDREN, here
                rooted = True
                current = -1
                start = at + 1
                at = name_end(data, start)
                name = intern(data, start, at, ELEMENT_NAME, table, named)
                if name < 0:
                    return NAMES, here
                named = max(named, name + 1)
                if count == most:
                    return NODES, here
                element = count
                labels[element] = name
                parents[element] = open_nodes[depth - 1] if depth > 0 else -1
                ends[element] = element
                levels[element] = depth
                begins[element] = length
                stops[element] = length
                count += 1
                given = 0
                while True:
                    at = blank_end(data, at)
                    if at >= size:
                        return STRANGE, here
                    if data[at] == _GREATER:
                        open_nodes[depth] = element
                        open_children[depth] = 0
                        depth += 1
                        at += 1
                        break
                    if data[at] == _SLASH:
                        ends[element] = count - 1
                        at += 2
                        break
                    given += 1
                    if given > attributes:
                        return ATTRIBUTES, here
                    start = at
                    at = name_end(data, start)
                    stop = at
                    at = blank_end(data, at)
                    if stop == start or at >= size or data[at] != _EQUALS:
                        return STRANGE, here
                    at = blank_end(data, at + 1)
                    if at >= size or (data[at] != _QUOTE and data[at] != _APOSTROPHE):
                        return STRANGE, here
                    if declares(data, start, stop):
                        declared += 1
                        if depth > 0:
                            scoped += 1
                        quote = data[at]
                        at += 1
                        while at < size and data[at] != quote:
                            at += 1
                        at += 1
                        continue
                    name = intern(data, start, stop, ATTRIBUTE_NAME, table, named)
                    if name < 0:
                        return NAMES, here
                    named = max(named, name + 1)
                    if count == most:
                        return NODES, here
                    labels[count] = name
                    parents[count] = element
                    ends[count] = count
                    levels[count] = depth + 1
                    begins[count] = valued
                    quote = data[at]
                    at += 1
                    while at < size and data[at] != quote:
                        byte = data[at]
                        if byte == _AND:
                            at, valued = reference(data, at, values, valued)
                            if at < 0:
                                return ENTITY, -at
                            continue
                        if byte == _RETURN and at + 1 < size and data[at + 1] == _NEWLINE:
                            at += 1
                        values[valued] = _BLANK if byte in (_TAB, _NEWLINE, _RETURN) else byte
                        valued += 1
                        at += 1
                    if at >= size:
                        return STRANGE, here
                    at += 1
                    stops[count] = valued
                    count += 1
                continue
        if depth == 0:  # blanks around the root element, or what the parser refuses
            at += 1
            continue
        if current < 0:
            open_children[depth - 1] += 1
            if open_children[depth - 1] > children:
                return CHILDREN, here
            name = intern(data, 0, 0, NO_NAME, table, named)
            if name < 0:
                return NAMES, here
            named = max(named, name + 1)
            if count == most:
                return NODES, here
            current = count
            labels[current] = name
            parents[current] = open_nodes[depth - 1]
            ends[current] = current
            levels[current] = depth
            begins[current] = length
            count += 1
        while at < size:
            byte = data[at]
            if section:
                if _closes(data, at):
                    at += 3
                    break
            elif byte == _LESS:
                break
            elif byte == _AND:
                at, length = reference(data, at, texts, length)
                if at < 0:
                    return ENTITY, -at
                continue
            if byte == _RETURN and at + 1 < size and data[at + 1] == _NEWLINE:
                at += 1
            texts[length] = _NEWLINE if byte == _RETURN else byte
            length += 1
            at += 1
        stops[current] = length
    if depth > 0 or not rooted:
        return STRANGE, size
    if length + valued > most_text:
        return TEXT, size
    for node in range(count):
        if table.kinds[labels[node]] == ATTRIBUTE_NAME:
            begins[node] += length
            stops[node] += length
    for offset in range(valued):
        texts[length + offset] = values[offset]
    totals[_NODES], totals[_SCOPED], totals[_DECLARED] = count, scoped, declared
    totals[_NAMED], totals[_LENGTH] = named, length + valued
    return READ, size
