"""Which kind of content the filters of tables are for, by the dialects that their rows name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.registry import contents_of, kind_of, quoted, strange, titles_of
from headgate.errors import HeadgateError, TableError
from headgate.runtime.rows import DIALECT, FILTER, read_line
from headgate.tables.filter_rows import UNUSUAL, mentions
from headgate.tables.lines import VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from headgate.contents.kind import FilterSettings
    from headgate.contents.protocol import Contents


def choose(
    wanted: FilterSettings, tables: Sequence[str], dialects: set[str], read_sample: Callable[[str], Any]
) -> Contents:
    """Choose the kinds that the filters of tables are for, as one; refuses settings that do not fit."""
    kind = kind_of(contents_of(dialects) or contents_of([wanted.dialect]))
    wrong = strange(kind, wanted)
    if wrong is not None:
        owners, settings = wrong
        what = f"the filters of {' and '.join(tables)}"
        spoken = quoted(sorted(dialects)) if dialects else "none"
        raise TableError(
            f"{settings} are for filters of {titles_of(owners)}, and {what} are {spoken}: leave them out, or "
            f"say --dialect {' or '.join(owner.dialects[0] for owner in owners)}"
        )
    return kind.compiler(wanted, read_sample)


class _Row(msgspec.Struct, gc=False):
    filter: Any = None
    dialect: Any = None


_ROWS = msgspec.json.Decoder(_Row)


def find_dialects(batches: Iterable[pa.RecordBatch], default: str) -> Iterator[pa.RecordBatch]:
    """List the dialects of the filters of each batch; lines that cannot be read are for the job to refuse."""
    for batch in batches:
        values, named = batch[VALUE], mentions(batch, [DIALECT])
        # One of those that name none says for all.
        unnamed = (_dialect(line, default) for line in values.filter(pc.invert(named)).to_pylist())
        first = next((each for each in unnamed if each is not None), None)
        others = (_dialect(line, default) for line in values.filter(named).to_pylist())
        dialects = {each for each in (first, *others) if each is not None}
        yield pa.RecordBatch.from_pydict({DIALECT: pa.array(sorted(dialects), pa.string())})


def _dialect(line: bytes | None, default: str) -> str | None:
    if not line or not line.strip():
        return None
    try:
        row = _ROWS.decode(line)
        text, dialect = row.filter, row.dialect
        if text is None or dialect is None:
            # Names have no case.
            fields = read_line(line)
            text, dialect = fields.get(FILTER), fields.get(DIALECT)
    except (*UNUSUAL, HeadgateError):
        return None
    return None if text is None else default if dialect is None else str(dialect)
