"""Hot loops: the distinct paths of labels in a document, and how far each leads into the trie.

Nodes with the same labels from the root down are alike to the trie, so it is walked once for each path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.hashing import bloom_bit, hash_step
from headgate.core.jit import bare, bare_inner
from headgate.xml.index.arrays import CHILD_AXIS, DESCENDANT_AXIS, DOCUMENT
from headgate.xml.index.scratch import DONE, FULL_PAIRS, PAIRS, PATHS

if TYPE_CHECKING:
    from headgate.core.arrays import Ints32
    from headgate.xml.events.document import Document
    from headgate.xml.index.arrays import Trie
    from headgate.xml.index.scratch import DocumentScratch, IndexScratch, Lists

CLASSES = 3
"""How many labels of patterns a name has at most: itself, in any namespace, and any at all."""


@bare
def find_paths(document: Document, classes: Ints32, sized: DocumentScratch, fixed: IndexScratch) -> None:
    """Find the paths of a document, and number them such that those below one follow it."""
    labels, parents, ends = document.labels, document.parents, document.ends
    nodes = len(labels)
    # As large as this document needs, not as the largest one so far.
    size = 4
    while size < 2 * nodes + 2:
        size *= 2
    table, mask = sized.table, np.uint64(size - 1)
    for i in range(size):
        table[i] = 0
    # In the order in which they are met; `depth` holds the parents for now, and `end` the names.
    count = 1
    sized.depth[0], sized.end[0] = -1, -1
    for n in range(nodes):
        label = labels[n]
        if ends[n] == n:
            named = False
            for c in range(CLASSES):
                named |= classes[CLASSES * label + c] >= 0
            if not named:
                sized.path[n] = -1
                continue
        up = 0 if parents[n] < 0 else sized.path[parents[n]]
        at = hash_step(int(up), 0, int(label)) & mask
        while table[at] > 0 and (sized.depth[table[at]] != up or sized.end[table[at]] != label):
            at = (at + np.uint64(1)) & mask
        if table[at] == 0:
            table[at] = count
            sized.depth[count], sized.end[count] = up, label
            count += 1
        sized.path[n] = table[at]
    fixed.counts[PATHS] = count
    for p in range(count):
        sized.first[p] = -1
    for p in range(count - 1, 0, -1):
        up = sized.depth[p]
        sized.following[p], sized.first[up] = sized.first[up], p
    _number_paths(sized, count)
    _file_nodes(sized, nodes, count)
    sized.top[0] = 0
    for p in range(1, count):
        # Nodes of one path that have one parent follow each other.
        up, before, families = sized.parent[p], -2, 0
        for i in range(sized.node_start[p], sized.node_start[p + 1]):
            parent = parents[sized.node[i]]
            families += parent != before
            before = parent
        all_have = up == 0 or families == sized.node_start[up + 1] - sized.node_start[up]
        sized.top[p] = sized.top[up] if all_have else p


@bare_inner
def _number_paths(sized: DocumentScratch, count: int) -> None:
    """Walk the tree of paths: `number` is the new number of each."""
    for p in range(count):
        sized.name[p] = sized.end[p]
    # `rank` is large enough to hold the names by their new numbers, and not in use yet.
    at, fresh = 0, 0
    sized.following[0] = -1
    while at >= 0:
        sized.number[at] = fresh
        sized.rank[fresh] = sized.name[at]
        sized.parent[fresh] = -1 if at == 0 else sized.number[sized.depth[at]]
        fresh += 1
        if sized.first[at] >= 0:
            at = sized.first[at]
            continue
        while at >= 0:
            sized.end[sized.number[at]] = fresh - 1
            if sized.following[at] >= 0:
                at = sized.following[at]
                break
            at = sized.depth[at]
    for p in range(count):
        sized.name[p] = sized.rank[p]


@bare_inner
def _file_nodes(sized: DocumentScratch, nodes: int, count: int) -> None:
    """List the nodes of each path."""
    for p in range(count + 1):
        sized.node_start[p] = 0
    for n in range(nodes):
        if sized.path[n] >= 0:
            sized.path[n] = sized.number[sized.path[n]]
            sized.node_start[sized.path[n] + 1] += 1
    for p in range(count):
        sized.node_start[p + 1] += sized.node_start[p]
        sized.first[p] = 0
    for n in range(nodes):
        p = sized.path[n]
        if p >= 0:
            sized.rank[n] = sized.first[p]
            sized.node[sized.node_start[p] + sized.first[p]] = n
            sized.first[p] += 1


@bare_inner
def _step(trie: Trie, t: int, axis: int, label: int) -> int:
    """Find where a label leads to, -1 for nowhere."""
    mask = np.uint64(len(trie.table) - 1)
    at = hash_step(t, axis, label) & mask
    while True:
        node = trie.table[at]
        if node < 0:
            return -1
        if trie.parent[node] == t and trie.label[node] == label and trie.axis[node] == axis:
            return int(node)
        at = (at + np.uint64(1)) & mask


@bare_inner
def _reach(fixed: IndexScratch, lists: Lists, begin: int, t: int) -> bool:
    """Add a node of the trie to those of a path, which are listed from `begin` on; tells whether it fits."""
    slot, count = fixed.active_place[t], fixed.counts[PAIRS]
    if begin <= slot < count and lists.active[slot] == t:
        return True
    if count >= len(lists.active):
        return False
    lists.active[count] = t
    fixed.active_place[t] = count
    fixed.counts[PAIRS] = count + 1
    return True


@bare
def walk_trie(trie: Trie, classes: Ints32, sized: DocumentScratch, fixed: IndexScratch, lists: Lists) -> int:
    """List for each path the nodes of the trie that it leads to; returns DONE or FULL_PAIRS."""
    lists.active[0], lists.stack[0] = DOCUMENT, DOCUMENT
    fixed.counts[PAIRS] = 1
    sized.active_start[0], sized.active_start[1] = 0, 1
    sized.depth[0] = 1 if trie.far[DOCUMENT] else 0
    for p in range(1, fixed.counts[PATHS]):
        up = sized.parent[p]
        begin = sized.active_start[p]
        depth = sized.depth[up]
        for c in range(CLASSES):
            label = int(classes[CLASSES * sized.name[p] + c])
            if label < 0:
                continue
            near, far = bloom_bit(CHILD_AXIS, label), bloom_bit(DESCENDANT_AXIS, label)
            for i in range(sized.active_start[up], sized.active_start[up + 1]):
                t = lists.active[i]
                if trie.bloom[t] & near:
                    node = _step(trie, int(t), CHILD_AXIS, label)
                    if node >= 0 and not _reach(fixed, lists, begin, node):
                        return FULL_PAIRS
            for i in range(depth):
                t = lists.stack[i]
                if trie.bloom[t] & far:
                    node = _step(trie, int(t), DESCENDANT_AXIS, label)
                    if node >= 0 and not _reach(fixed, lists, begin, node):
                        return FULL_PAIRS
        end = fixed.counts[PAIRS]
        sized.active_start[p + 1] = end
        for i in range(begin, end):
            t = lists.active[i]
            # Once on the way from the root: what led to it further up leads from there on as well.
            slot = fixed.stack_place[t]
            if trie.far[t] and not (slot < depth and lists.stack[slot] == t):
                if depth >= len(lists.stack):
                    return FULL_PAIRS
                lists.stack[depth] = t
                fixed.stack_place[t] = depth
                depth += 1
        sized.depth[p] = depth
    return DONE
