"""Hot loops: what the taxonomy adds to an event.

It is looked up here, on the event's side: a node that it lists gets its types, and each type gives virtual
triples to all classes above it, each property to all above it that filters name. So a filter is one edge
whatever the taxonomy is, and the taxonomy can change without the index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.hashing import hash_bytes
from headgate.core.jit import bare, bare_inner
from headgate.rdf.events.preparing import find_text
from headgate.rdf.index.arrays import ALWAYS_CODE, IRI, ISA_CODE, TYPE_CODE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.rdf.events.preparing import Draft, Wanted
    from headgate.rdf.index.arrays import Encoded


class Mapped(NamedTuple):
    """A taxonomy in terms of a dictionary: `code[t]` and `hat[t]` are those of term t and of ^t, or -1."""

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]
    table: NDArray[np.int32]
    code: NDArray[np.int32]
    hat: NDArray[np.int32]
    class_start: NDArray[np.int64]
    class_up: NDArray[np.int32]
    property_start: NDArray[np.int64]
    property_up: NDArray[np.int32]
    type_start: NDArray[np.int64]
    type_of: NDArray[np.int32]


@bare_inner
def _find_local(event: Encoded, draft: Draft, data: NDArray[np.uint8], begin: int, end: int) -> int:
    """Find a term of the event by its text; -1 less the free place in the table for none."""
    mask = np.uint64(len(draft.local) - 1)
    at = hash_bytes(data, begin, end) & mask
    while True:
        t = draft.local[at]
        if t < 0:
            return -1 - int(at)
        first = event.start[t]
        if event.stop[t] - first == end - begin:
            same = True
            for i in range(end - begin):
                if event.text[first + i] != data[begin + i]:
                    same = False
                    break
            if same:
                return int(t)
        at = (at + np.uint64(1)) & mask


@bare_inner
def add_term(
    event: Encoded, draft: Draft, data: NDArray[np.uint8], begin: int, end: int, code: int, kind: int
) -> int:
    """Add a term that the event does not hold; returns -1 if there is no room."""
    t, size = draft.counts[0], draft.counts[2]
    if t >= len(event.code) or size + end - begin > len(event.text):
        return -1
    for i in range(end - begin):
        event.text[size + i] = data[begin + i]
    event.start[t], event.stop[t] = size, size + end - begin
    event.code[t], event.kind[t] = code, kind
    event.begin[t], event.end[t] = size + 1, size + end - begin - 1
    event.marks[t], event.line[t], event.suffix[t] = 0, 0, -1
    draft.counts[0] = t + 1
    draft.counts[2] = size + end - begin
    return int(t)


@bare_inner
def _local(event: Encoded, draft: Draft, mapped: Mapped, place: int) -> int:
    """Find or add the term of the taxonomy at a place; returns -1 if there is no room."""
    begin, end = mapped.offsets[place], mapped.offsets[place + 1]
    t = _find_local(event, draft, mapped.data, begin, end)
    if t >= 0:
        return t
    free = -1 - t
    t = add_term(event, draft, mapped.data, begin, end, mapped.code[place], IRI)
    if t >= 0:
        draft.local[free] = t
    return t


@bare_inner
def add_triple(event: Encoded, draft: Draft, s: int, p: int, o: int, virtual: int) -> bool:
    """Add a triple; returns whether there was room."""
    t = draft.counts[1]
    if t >= len(event.s):
        return False
    event.s[t], event.p[t], event.o[t], event.virtual[t] = s, p, o, virtual
    draft.counts[1] = t + 1
    return True


@bare
def add_types(event: Encoded, draft: Draft, mapped: Mapped, type_place: int) -> bool:
    """Add the types that the taxonomy lists for nodes; returns whether there was room."""
    triples, terms = draft.counts[1], draft.counts[0]
    # Triples by subject as lists, and marks of objects, in arrays that are filled later.
    first, following, is_object = event.s_start, event.by_s, event.o_start
    for t in range(terms):
        first[t], is_object[t] = -1, 0
    for i in range(triples):
        following[i] = first[event.s[i]]
        first[event.s[i]] = i
        is_object[event.o[i]] = 1
    for t in range(terms):
        if event.kind[t] != IRI or (first[t] < 0 and not is_object[t]):
            continue
        place = find_text(mapped, event.text, event.start[t], event.stop[t])
        if place < 0 or mapped.type_start[place] == mapped.type_start[place + 1]:
            continue
        p = _local(event, draft, mapped, type_place)
        if p < 0:
            return False
        for k in range(mapped.type_start[place], mapped.type_start[place + 1]):
            o = _local(event, draft, mapped, mapped.type_of[k])
            if o < 0:
                return False
            i = first[t]
            while i >= 0 and (event.p[i] != p or event.o[i] != o):
                i = following[i]
            if i < 0 and not add_triple(event, draft, t, p, o, 0):
                return False
    return True


@bare
def add_classes(event: Encoded, draft: Draft, mapped: Mapped, wanted: Wanted) -> bool:
    """Add virtual triples to the classes above the types of each node; returns whether there was room."""
    isa = -1
    for i in range(draft.counts[1]):
        o = event.o[i]
        if event.code[event.p[i]] != TYPE_CODE or event.virtual[i]:
            continue
        if isa < 0:
            isa = add_term(event, draft, mapped.data, 0, 0, ISA_CODE, 0)
            if isa < 0:
                return False
        place = find_text(mapped, event.text, event.start[o], event.stop[o])
        if place < 0:
            known = event.code[o] >= 0 or wanted.class_variables
            if known and not add_triple(event, draft, event.s[i], isa, o, 1):
                return False
            continue
        for k in range(mapped.class_start[place], mapped.class_start[place + 1]):
            above = mapped.class_up[k]
            if mapped.code[above] < 0 and not wanted.class_variables:
                continue
            t = _local(event, draft, mapped, above)
            if t < 0 or not add_triple(event, draft, event.s[i], isa, t, 1):
                return False
    return True


@bare
def add_hats(event: Encoded, draft: Draft, mapped: Mapped, triples: int) -> bool:
    """Add virtual triples of the properties above each property; returns whether there was room."""
    first = draft.counts[0]
    for i in range(triples):
        p = event.p[i]
        place = find_text(mapped, event.text, event.start[p], event.stop[p])
        if place < 0:
            continue
        for k in range(mapped.property_start[place], mapped.property_start[place + 1]):
            code = mapped.hat[mapped.property_up[k]]
            if code < 0:
                continue
            hat = -1
            for t in range(first, draft.counts[0]):
                if event.code[t] == code:
                    hat = t
            if hat < 0:
                hat = add_term(event, draft, mapped.data, 0, 0, code, 0)
            if hat < 0 or not add_triple(event, draft, event.s[i], hat, event.o[i], 1):
                return False
    return True


@bare
def add_always(event: Encoded, draft: Draft) -> bool:
    """Add the virtual triple that a pattern without edges asks for; returns whether there was room."""
    t = add_term(event, draft, event.text, 0, 0, ALWAYS_CODE, 0)
    return t >= 0 and add_triple(event, draft, t, t, t, 1)
