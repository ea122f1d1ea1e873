"""The furniture of all commands: the group, the options, sessions, and how results are told."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate import __version__
from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _typeshed import DataclassInstance

    from headgate.spark.session import Session

STRICT_EXIT = 3


class _Command(click.Command):
    """Show examples as they are written: click's mark for that is a control character, ours is its escape."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.help = (self.help or "").replace("\\b", "\b")
        super().format_help_text(ctx, formatter)


class _Interrupted(click.ClickException):
    exit_code = 130


class _Group(_Command, click.Group):
    command_class = _Command
    group_class = type

    def invoke(self, ctx: click.Context) -> None:
        try:
            super().invoke(ctx)
        except KeyboardInterrupt:
            # Before click sees it and prints an empty line.
            raise _Interrupted("interrupted") from None


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="headgate")
def cli() -> None:
    r"""Content-based publish/subscribe: standing filters, events, and who gets what.

    \b
    Begin with:
      headgate doctor        what this machine lacks
      headgate demo          an advertising workload, from nothing to a report
    """


def spark_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of every command that runs on Spark."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text."),
        click.option("--quiet", is_flag=True, help="Show no progress."),
        click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A Spark setting; may be repeated."),
        click.option(
            "--master", metavar="URL", help="A Spark master; by default Spark runs inside this process."
        ),
    ):
        command = option(command)
    return command


@contextmanager
def session(master: str | None, conf: tuple[str, ...], *, quiet: bool) -> Iterator[Session]:
    """Hold a Spark session while a command works."""
    from headgate.spark.progress import step
    from headgate.spark.session import close_session, open_session

    chosen = settings(conf)
    with step("starting Spark", quiet=quiet):
        session = open_session(master, settings=chosen)
    try:
        yield session
    finally:
        close_session(session)


def settings(conf: tuple[str, ...]) -> dict[str, str]:
    """Read NAME=VALUE pairs."""
    found = {}
    for entry in conf:
        name, sign, value = entry.partition("=")
        if not sign:
            raise click.UsageError(f"--conf {entry}: write NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


def beside(path: str, word: str) -> str:
    """Name the rejected table after the output: out/snapshot -> out/snapshot-rejected.jsonl."""
    place = Path(path.rstrip("/")).absolute() if Path(path).name in {"", ".."} else Path(path.rstrip("/"))
    return str(place.with_name(f"{place.stem if place.suffix else place.name}-{word}.jsonl"))


def tell(result: dict[str, Any], lines: list[str], *, as_json: bool) -> None:
    """Print a result, for machines or for people."""
    if as_json:
        click.echo(json.dumps(result, default=str, ensure_ascii=False))
    else:
        for line in lines:
            click.echo(line)


def fields_of(done: DataclassInstance) -> dict[str, Any]:
    """Return the fields of a result for JSON: named tuples as objects, and what there is none of left out."""
    found = {}
    for field in fields(done):
        value = getattr(done, field.name)
        if value is not None:
            found[field.name] = value._asdict() if hasattr(value, "_asdict") else value
    return found


def read_text(path: str) -> str:
    """Read a small file that an option names."""
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise TableError(f"{path} cannot be read: {reason}") from None
