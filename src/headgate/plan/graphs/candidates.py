"""Which views may embed in which: by label sets first, then by signatures.

If u embeds in v, the labels of u are among those of v. Views with the same labels are grouped, and the groups
whose labels are among those of a target's are looked up by their rarest label:

    homes of label l    the groups in which no label is rarer than l
    near group g        all groups at home with a label of g that have no label besides those of g

Each group is at home once, so nothing is found twice. A group without labels is near every other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import inner, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.contents.views import Views


class Groups(NamedTuple):
    """Views grouped by their labels.

    members            the views of group g are members[starts[g]:starts[g + 1]], rising
    demands            of each of `members`, two words each
    labels             those of group g are labels[label_starts[g]:label_starts[g + 1]], rising
    sketches           one word a group: bit l % 64 for each label l
    homes              groups at home with label l are homes[home_starts[l]:home_starts[l + 1]]
    bare               the group without labels, or -1
    """

    members: NDArray[np.int32]
    starts: NDArray[np.int64]
    demands: NDArray[np.uint64]
    labels: NDArray[np.int32]
    label_starts: NDArray[np.int64]
    sketches: NDArray[np.uint64]
    homes: NDArray[np.int32]
    home_starts: NDArray[np.int64]
    bare: int


def group_views(views: Views, members: NDArray[np.int32]) -> tuple[Groups, NDArray[np.int32]]:
    """Group some views; returns the group of each of them too. `members` are rising."""
    offsets = views.label_offsets.tolist()
    labels = np.ascontiguousarray(views.labels, np.int32)
    numbers: dict[bytes, int] = {}
    groups = np.fromiter(
        (
            numbers.setdefault(labels[offsets[view] : offsets[view + 1]].tobytes(), len(numbers))
            for view in members.tolist()
        ),
        np.int32,
        len(members),
    )
    order = np.argsort(groups, kind="stable")
    sorted_members = members[order]
    rows = [np.frombuffer(each, np.int32) for each in numbers]
    packed = np.concatenate([*rows, np.empty(0, np.int32)])
    label_starts = _starts(np.fromiter(map(len, rows), np.int64, len(rows)))
    counts = np.bincount(packed, minlength=1)
    homes = np.fromiter(
        (row[np.argmin(counts[row])] if len(row) else -1 for row in rows), np.int64, len(rows)
    )
    settled = np.flatnonzero(homes >= 0)
    by_home = settled[np.argsort(homes[settled], kind="stable")]
    bare = np.flatnonzero(homes < 0)
    found = Groups(
        members=sorted_members,
        starts=_starts(np.bincount(groups, minlength=len(rows))),
        demands=np.ascontiguousarray(views.demands.reshape(-1, 2)[sorted_members]).reshape(-1),
        labels=packed,
        label_starts=label_starts,
        sketches=_sketches(packed, label_starts),
        homes=by_home.astype(np.int32),
        home_starts=_starts(np.bincount(homes[settled], minlength=len(counts))),
        bare=int(bare[0]) if len(bare) else -1,
    )
    return found, groups


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _sketches(labels: NDArray[np.int32], starts: NDArray[np.int64]) -> NDArray[np.uint64]:
    found = np.zeros(len(starts) - 1, np.uint64)
    owners = np.repeat(np.arange(len(found)), np.diff(starts))
    np.bitwise_or.at(found, owners, np.uint64(1) << (labels % 64).astype(np.uint64))
    return found


@inner
def _near(groups: Groups, own: int, out: NDArray[np.int32]) -> int:
    """Write the groups whose labels are among those of a group, itself too; return how many."""
    count = 0
    if groups.bare >= 0:
        out[0] = groups.bare
        count = 1
    outside = ~groups.sketches[own]
    begin, end = groups.label_starts[own], groups.label_starts[own + 1]
    for place in range(begin, end):
        label = groups.labels[place]
        for i in range(groups.home_starts[label], groups.home_starts[label + 1]):
            other = groups.homes[i]
            if groups.sketches[other] & outside != 0:
                continue
            at = begin
            inside = True
            for j in range(groups.label_starts[other], groups.label_starts[other + 1]):
                while at < end and groups.labels[at] < groups.labels[j]:
                    at += 1
                if at == end or groups.labels[at] != groups.labels[j]:
                    inside = False
                    break
            if inside:
                out[count] = other
                count += 1
    return count


@kernel
def find_near(groups: Groups, own: int, out: NDArray[np.int32]) -> int:
    """Write the groups whose labels are among those of a group, itself too; return how many."""
    return _near(groups, own, out)


@kernel
def find_pairs(
    groups: Groups,
    offers: NDArray[np.uint64],
    targets: NDArray[np.int32],
    target_groups: NDArray[np.int32],
    first: int,
    near: NDArray[np.int32],
    sources: NDArray[np.int32],
    aims: NDArray[np.int32],
) -> tuple[int, int]:
    """Write pairs of a source and a target that labels and signatures let pass; a view is not its own source.

    Targets are those from `first` on, those of a group together. Stops before a target whose sources do not
    fit any more; returns the place of the first target that is left, and the number of pairs. `sources` has
    room for those of any one target; `near` for all groups.
    """
    count = 0
    known = -1
    nears = 0
    for place in range(first, len(targets)):
        target = targets[place]
        if target_groups[place] != known:
            known = target_groups[place]
            nears = _near(groups, known, near)
        complete = count
        low, high = ~offers[2 * target], ~offers[2 * target + 1]
        for i in range(nears):
            group = near[i]
            for j in range(groups.starts[group], groups.starts[group + 1]):
                if (groups.demands[2 * j] & low) | (groups.demands[2 * j + 1] & high) != 0:
                    continue
                if groups.members[j] == target:
                    continue
                if count == len(sources):
                    return place, complete
                sources[count] = groups.members[j]
                aims[count] = target
                count += 1
    return len(targets), count
