"""Hot loop: the bytes of a document to arrays.

It reads what is well-formed, without a DOCTYPE, and finds out about limits; it does not judge. Of what is not
well-formed it makes something, or says that it cannot, and never reads past the end: the parser judges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare
from headgate.xml.events.tokens import behind, blank_end, declares, intern, name_end, reference

if TYPE_CHECKING:
    from numpy.typing import NDArray

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

_LESS = 60
_GREATER = 62
_SLASH = 47
_AND = 38
_RETURN = 13
_NEWLINE = 10
_QUOTE = 34
_APOSTROPHE = 39
_EQUALS = 61


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
    labels: NDArray[np.int32]
    parents: NDArray[np.int32]
    ends: NDArray[np.int32]
    levels: NDArray[np.int32]
    begins: NDArray[np.int32]
    stops: NDArray[np.int32]
    text: NDArray[np.uint8]
    name_starts: NDArray[np.int32]
    name_stops: NDArray[np.int32]
    name_kinds: NDArray[np.uint8]


def scan(
    data: NDArray[np.uint8],
    room: int,
    depth: int,
    attributes: int,
    children: int,
    nodes: int,
    names: int,
    text: int,
) -> ScanResult:
    """Read a document; `room` is the number of nodes that it cannot have more of."""
    most = min(room, nodes)
    found = np.empty((6, most), np.int32)
    size = max(1, min(names + 1, most))  # that of texts is no name of theirs
    slots = 16
    while slots < 2 * size:
        slots *= 2
    name_starts, name_stops = np.empty(size, np.int32), np.empty(size, np.int32)
    name_kinds = np.empty(size, np.uint8)
    texts, values = np.empty(len(data), np.uint8), np.empty(len(data), np.uint8)
    totals = np.zeros(5, np.int64)
    status, place = _scan(
        data,
        found,
        texts,
        values,
        np.zeros(slots, np.int32),
        np.empty(size, np.uint64),
        name_starts,
        name_stops,
        name_kinds,
        np.empty((2, depth), np.int32),
        attributes,
        children,
        text,
        totals,
    )
    count, scoped, declared, named, length = totals.tolist()
    if status <= STRANGE and named > names and NO_NAME not in name_kinds[:named]:
        status, place = NAMES, len(data)
    columns = found[:, :count].copy()
    return ScanResult(
        status,
        place,
        count,
        scoped,
        declared,
        columns[0],
        columns[1],
        columns[2],
        columns[3],
        columns[4],
        columns[5],
        texts[:length].copy(),
        name_starts[:named],
        name_stops[:named],
        name_kinds[:named],
    )


@bare
def _scan(
    data: NDArray[np.uint8],
    found: NDArray[np.int32],
    texts: NDArray[np.uint8],
    values: NDArray[np.uint8],
    slots: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    name_starts: NDArray[np.int32],
    name_stops: NDArray[np.int32],
    name_kinds: NDArray[np.uint8],
    stack: NDArray[np.int32],
    attributes: int,
    children: int,
    most_text: int,
    totals: NDArray[np.int64],
) -> tuple[int, int]:
    """Fill the arrays; return status and place. Totals are nodes, scoped, declared, names, bytes of text."""
    labels, parents, ends, levels, begins, stops = found[0], found[1], found[2], found[3], found[4], found[5]
    size, most, deepest = len(data), found.shape[1], stack.shape[1]
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
    place = 0
    while place < size:
        here = place
        if length + valued > most_text:
            return TEXT, here
        section = False
        if data[place] == _LESS:
            if place + 2 >= size:
                return STRANGE, here
            sign = data[place + 1]
            if sign == 33:  # !
                if data[place + 2] == 45:  # a comment
                    place = behind(data, place + 6, 45, 45)
                    continue
                if data[place + 2] != 91:
                    return DOCTYPE, here
                section = True
                place += 9  # <![CDATA[
                if depth == 0:
                    return STRANGE, here
                if place + 2 < size and data[place] == 93 and data[place + 1] == 93 and data[place + 2] == 62:
                    place += 3
                    continue
            elif sign == 63:  # ?
                place = behind(data, place + 4, -1, 63)
                continue
            elif sign == _SLASH:
                if depth == 0:
                    return STRANGE, here
                depth -= 1
                ends[open_nodes[depth]] = count - 1
                stops[open_nodes[depth]] = length
                current = -1
                while place < size and data[place] != _GREATER:
                    place += 1
                place += 1
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
                start = place + 1
                place = name_end(data, start)
                name = intern(
                    data,
                    start,
                    place,
                    ELEMENT_NAME,
                    slots,
                    hashes,
                    name_starts,
                    name_stops,
                    name_kinds,
                    named,
                )
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
                    place = blank_end(data, place)
                    if place >= size:
                        return STRANGE, here
                    if data[place] == _GREATER:
                        open_nodes[depth] = element
                        open_children[depth] = 0
                        depth += 1
                        place += 1
                        break
                    if data[place] == _SLASH:
                        ends[element] = count - 1
                        place += 2
                        break
                    given += 1
                    if given > attributes:
                        return ATTRIBUTES, here
                    start = place
                    place = name_end(data, start)
                    stop = place
                    place = blank_end(data, place)
                    if stop == start or place >= size or data[place] != _EQUALS:
                        return STRANGE, here
                    place = blank_end(data, place + 1)
                    if place >= size or (data[place] != _QUOTE and data[place] != _APOSTROPHE):
                        return STRANGE, here
                    if declares(data, start, stop):
                        declared += 1
                        if depth > 0:
                            scoped += 1
                        quote = data[place]
                        place += 1
                        while place < size and data[place] != quote:
                            place += 1
                        place += 1
                        continue
                    name = intern(
                        data,
                        start,
                        stop,
                        ATTRIBUTE_NAME,
                        slots,
                        hashes,
                        name_starts,
                        name_stops,
                        name_kinds,
                        named,
                    )
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
                    quote = data[place]
                    place += 1
                    while place < size and data[place] != quote:
                        byte = data[place]
                        if byte == _AND:
                            place, valued = reference(data, place, values, valued)
                            if place < 0:
                                return ENTITY, -place
                            continue
                        if byte == _RETURN and place + 1 < size and data[place + 1] == _NEWLINE:
                            place += 1
                        values[valued] = 32 if byte in (9, 10, 13) else byte
                        valued += 1
                        place += 1
                    if place >= size:
                        return STRANGE, here
                    place += 1
                    stops[count] = valued
                    count += 1
                continue
        if depth == 0:  # blanks around the root element, or what the parser refuses
            place += 1
            continue
        if current < 0:
            open_children[depth - 1] += 1
            if open_children[depth - 1] > children:
                return CHILDREN, here
            name = intern(data, 0, 0, NO_NAME, slots, hashes, name_starts, name_stops, name_kinds, named)
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
        while place < size:
            byte = data[place]
            if section:
                if byte == 93 and place + 2 < size and data[place + 1] == 93 and data[place + 2] == _GREATER:
                    place += 3
                    break
            elif byte == _LESS:
                break
            elif byte == _AND:
                place, length = reference(data, place, texts, length)
                if place < 0:
                    return ENTITY, -place
                continue
            if byte == _RETURN and place + 1 < size and data[place + 1] == _NEWLINE:
                place += 1
            texts[length] = _NEWLINE if byte == _RETURN else byte
            length += 1
            place += 1
        stops[current] = length
    if depth > 0 or not rooted:
        return STRANGE, size
    if length + valued > most_text:
        return TEXT, size
    for node in range(count):
        if name_kinds[labels[node]] == ATTRIBUTE_NAME:
            begins[node] += length
            stops[node] += length
    for offset in range(valued):
        texts[length + offset] = values[offset]
    totals[0] = count
    totals[1] = scoped
    totals[2] = declared
    totals[3] = named
    totals[4] = length + valued
    return READ, size
