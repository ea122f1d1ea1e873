"""Tables of filters of other systems to tables of subscriptions, in this process."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.errors import FilterError, SubscriptionError
from headgate.records.importers.registry import convert as to_sql
from headgate.records.importers.registry import row_of, rows_in
from headgate.records.language.parse import parse_filter
from headgate.records.names import USUAL, plain_text
from headgate.tables.lines import BROKEN, VALUE, read_lines
from headgate.tables.packed import read_file
from headgate.tables.places import Format, check_input, check_output, table_files
from headgate.tables.writing import writing_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headgate.records.names import NameSettings


class Converted(NamedTuple):
    """How many filters were converted, and how many rows refused."""

    filters: int
    rejected: int


def convert(
    subscriptions: str, dialect: str, output: str, rejected: str, settings: NameSettings = USUAL
) -> Converted:
    """Convert the filters of a table: subscriptions go to one table, refused rows with reasons to another.

    `settings` are those that the subscriptions will be compiled with.
    """
    for path in (output, rejected):
        if check_output(path) is not Format.JSONL:
            raise SubscriptionError(f"{path}: what is converted is written as JSON lines: name it .jsonl")
    done = refused = 0
    with _writing(output) as write, _writing(rejected) as refuse:
        for number, row_given in enumerate(_rows(subscriptions), 1):
            try:
                row = row_of(row_given, dialect)
                sql = to_sql(row.filter, dialect, settings)
                parse_filter(sql)
            except (FilterError, SubscriptionError) as error:
                position = error.position if isinstance(error, FilterError) else None
                refused_row = {"row": number, "reason": str(error)} | (
                    {} if position is None else {"position": position + 1}
                )
                refuse({**refused_row, "value": row_given})
                refused += 1
            else:
                write({"id": row.id, "filter": plain_text(sql), **row.others})
                done += 1
    return Converted(done, refused)


def _rows(path: str) -> Iterator[Any]:
    """Read rows: of a table, or of one document that holds many."""
    if check_input(path) is Format.JSONL and len(files := table_files(path)) == 1:
        try:
            document = json.loads(read_file(files[0]).decode("utf-8-sig"))
        except ValueError:
            # More than one line, as usual.
            pass
        else:
            yield from rows_in(document)
            return
    for batch in read_lines(path):
        for line, broken in zip(batch[VALUE].to_pylist(), batch[BROKEN].to_pylist(), strict=True):
            if line is not None and not line.strip():
                continue
            try:
                yield broken if line is None else json.loads(line)
            except ValueError:
                yield (line or b"").decode("utf-8", "replace")


@contextmanager
def _writing(path: str) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yield what writes rows as JSON lines beside their place; they are put there at the end."""
    with writing_file(path) as stream:

        def write(row: dict[str, Any]) -> None:
            stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")

        yield write
