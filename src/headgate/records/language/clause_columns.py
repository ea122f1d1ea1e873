"""Many filters in clauses at once: those that differ in their numbers only are taken apart by columns.

One text of a family (`families`) is taken apart as `splitting` does it. What is printed of each of its
clauses has the clause's numbers in it, and nothing else in it depends on them; so the clauses of the other
texts are the same with their own numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.contents.protocol import ClauseColumns
from headgate.core.interning import TextPool
from headgate.core.jit import kernel
from headgate.records.language.splitting import clause_of, plain_clauses
from headgate.records.programs.clauses import model_of
from headgate.records.programs.families import find_families, read_numbers
from headgate.records.programs.programs import starts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.contents.protocol import Clause
    from headgate.core.arrays import Bytes, Ints
    from headgate.records.programs.families import Family


def split_columns(texts: TextPool) -> list[ClauseColumns]:
    """Take apart the filters in SQL that are plain clauses joined by AND, and have many like them.

    >>> found = split_columns(TextPool.build([f"a>{n} AND b = 'x'" for n in range(40)]))
    >>> found[0].names, found[0].texts.texts()[:4]
    ((('a',), ('b',)), ['a > 0', "b = 'x'", 'a > 1', "b = 'x'"])
    """
    families, _ = find_families(texts)
    split = (_split(texts, family) for family in families)
    return [each for each in split if each is not None]


def _split(texts: TextPool, family: Family) -> ClauseColumns | None:
    pieces = plain_clauses(texts.text(int(family.rows[0])))
    if pieces is None:
        return None
    models = [model_of[piece] for piece in pieces]
    printed = [clause_of(each) for each in models if each is not None]
    if len(printed) < len(pieces):
        return None
    cut = _cut(pieces, printed, family.mantissa.shape[1])
    if cut is None:
        return None
    glue, first = cut
    lengths = family.end - family.at
    count = np.empty((len(family.rows), len(printed)), np.int64)
    fixed = np.diff(glue.offsets)
    for c in range(len(printed)):
        # A clause of n numbers has n + 1 pieces around them.
        around = fixed[first[c] + c : first[c + 1] + c + 1].sum()
        count[:, c] = around + lengths[:, first[c] : first[c + 1]].sum(axis=1)
    offsets = starts(count.ravel())
    data = np.empty(int(offsets[-1]), np.uint8)
    given = texts.data.view()
    given.flags.writeable = False
    _write(given, family.at, family.end, glue.offsets, glue.data, first, data)
    return ClauseColumns(family.rows, tuple(clause.names for clause in printed), TextPool(offsets, data))


def _cut(pieces: Sequence[str], printed: Sequence[Clause], width: int) -> tuple[TextPool, Ints] | None:
    """Cut what is printed at its numbers: the pieces around them, and by clause its first number."""
    _, given = read_numbers(TextPool.build(pieces))
    pool = TextPool.build([clause.filter for clause in printed])
    digests, written = read_numbers(pool)
    alike = (
        np.array_equal(given.start, written.start)
        and np.array_equal(given.mantissa, written.mantissa)
        and np.array_equal(given.scale, written.scale)
    )
    if not alike or given.start[-1] != width or not digests.all():
        return None
    glue: list[str] = []
    for c in range(len(printed)):
        own = slice(int(written.start[c]), int(written.start[c + 1]))
        begins = [int(pool.offsets[c]), *written.end[own].tolist()]
        ends = [*written.at[own].tolist(), int(pool.offsets[c + 1])]
        glue += [pool.data[a:b].tobytes().decode() for a, b in zip(begins, ends, strict=True)]
    return TextPool.build(glue), written.start


@kernel
def _write(
    data: Bytes, at: Ints, end: Ints, glue_offsets: Ints, glue: Bytes, first: Ints, out: Bytes
) -> None:
    """Write all clauses, text by text."""
    n = 0
    for r in range(len(at)):
        for c in range(len(first) - 1):
            for i in range(first[c], first[c + 1] + 1):
                for j in range(glue_offsets[i + c], glue_offsets[i + c + 1]):
                    out[n] = glue[j]
                    n += 1
                if i < first[c + 1]:
                    for j in range(at[r, i], end[r, i]):
                        out[n] = data[j]
                        n += 1
