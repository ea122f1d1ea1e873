"""Standard input and output in place of tables: `-`.

What comes in is copied to a file, and what goes out is written to one first, so that jobs here and on Spark
read and write it as any table, and nothing goes out before all is written.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.core.settings import SettingKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STANDARD = "-"
_BEGINNINGS = {b"\x1f\x8b": ".jsonl.gz", b"\x28\xb5\x2f\xfd": ".jsonl.zst", b"PAR1": ".parquet"}
"""What files of a format begin with; all others are taken for JSON lines."""
_SHOWN = 5
"""Refused rows that are shown where no table was named for them."""
_told: dict[str, str] = {}
"""What the places of standard input and output are called in messages."""


def named(text: str) -> str:
    """Name standard input and output in a message, where the files are named that stand for them."""
    for path, name in _told.items():
        text = text.replace(path, name)
    return text


def is_taken() -> bool:
    """Tell whether a table goes to standard output, so that messages must not."""
    return "standard output" in _told.values()


@contextmanager
def standard_places(options: Sequence[click.Parameter], values: dict[str, Any]) -> Iterator[None]:
    """Put files in the place of `-` where an option of a command names a table."""
    _told.clear()
    standard = [
        option for option in options if option.metavar == "TABLE" and values.get(str(option.name)) == STANDARD
    ]
    if not standard:
        yield
        return
    outputs = [option for option in standard if _is_output(option)]
    inputs = [option for option in standard if option not in outputs]
    for kind, several in (("input", inputs), ("output", outputs)):
        if len(several) > 1:
            both = " and ".join(option.opts[0] for option in several)
            raise click.UsageError(f"{both} are both standard {kind}: give one of them a file")
    if not str(values.get("master") or "local").startswith("local"):
        raise click.UsageError(
            f"{standard[0].opts[0]} -: workers of {values['master']} do not see what this machine is given: "
            "use a file that all of them see"
        )
    folder = Path(tempfile.mkdtemp(prefix="headgate-"))
    try:
        output = None
        for option in standard:
            if option in outputs:
                output = folder / "output.jsonl"
                _told[str(_beside(output))] = "the lines below"
                _told[str(output)] = "standard output"
                values[str(option.name)] = str(output)
            else:
                values[str(option.name)] = _take_in(folder)
        try:
            yield
        except SystemExit:
            # Done, though rows were refused.
            _hand_out(output)
            raise
        _hand_out(output)
    finally:
        # The names stay: an error is told after this.
        shutil.rmtree(folder, ignore_errors=True)


def _is_output(option: click.Parameter) -> bool:
    setting = getattr(option, "setting", None)
    return setting is not None and setting.kind is SettingKind.OUTPUT


def _take_in(folder: Path) -> str:
    """Copy standard input to a file; its first bytes say what it is."""
    path = folder / "input"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    with path.open("rb") as file:
        begin = file.read(4)
    ends = (ending for sign, ending in _BEGINNINGS.items() if begin.startswith(sign))
    known = path.with_name(f"input{next(ends, '.jsonl')}")
    path.rename(known)
    _told[str(known)] = "standard input"
    return str(known)


def _beside(output: Path) -> Path:
    return output.with_name("output-rejected.jsonl")


def _hand_out(output: Path | None) -> None:
    """Copy to standard output what was written for it; refused rows that have no table go to stderr."""
    if output is None:
        return
    refused = _beside(output)
    if refused.exists():
        with refused.open("rb") as lines:
            for line in islice(lines, _SHOWN):
                row = json.loads(line)
                click.echo(
                    f"refused: {row.pop('reason', '')}, in {' '.join(map(str, row.values()))}", err=True
                )
            rest = sum(1 for _ in lines)
        if rest:
            click.echo(f"refused: {rest:,} more; --rejected TABLE keeps all of them", err=True)
    if not output.exists():
        return
    out = sys.stdout.buffer
    try:
        with output.open("rb") as rows:
            shutil.copyfileobj(rows, out, 1 << 20)
        out.flush()
    except BrokenPipeError:
        # Whoever reads has enough, as `head` does. Python would report it once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
