"""The furniture of all commands: the group, shared options, sessions, and how results are told."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from contextlib import contextmanager
from dataclasses import fields
from importlib import import_module
from importlib.abc import MetaPathFinder
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import click

from headgate import __version__
from headgate.cli.options import complete_places, options_of
from headgate.cli.standard import is_taken, named, standard_places
from headgate.core.machine import need
from headgate.errors import TableError
from headgate.spark.session.java import check_master
from headgate.tables.settings import Where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from _typeshed import DataclassInstance

    from headgate.jobs.runner import Runner
    from headgate.spark.session.session import Session

    Decorated = Callable[..., Any]

_T = TypeVar("_T")
STRICT_EXIT = 3
ALONE = object()
"""What the command line is given as its object in a process that ends with the command."""
_EVERY = 10.0
"""Seconds between two lines about progress, where there is no terminal."""
_NAMED = ("--conf", "--option", "--set")
"""Options whose values are NAME=VALUE."""
_OTHERS = ("stream.options", "spark.conf")
"""Settings of a pipeline that are tables of what others know."""
_SECRET = re.compile(r"secret|password|token|key|credential", re.IGNORECASE)
_INSIDE = re.compile(r"(?:secret|password|token|credential)\w*[\"']?\s*[=:]", re.IGNORECASE)


class _Command(click.Command):
    """Show examples as they are written: click's mark for that is a control character, ours is its escape.

    Names of files are completed by shells, and `-` in the place of a table is standard input or output.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        complete_places(self.params)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.help = (self.help or "").replace("\\b", "\b")
        super().format_help_text(ctx, formatter)

    def invoke(self, ctx: click.Context) -> None:
        with standard_places(self.params, ctx.params):
            super().invoke(ctx)


HOMES = {
    command: module
    for module, commands in {
        "backtesting": ("backtest",),
        "explaining": ("explain",),
        "generating": ("generate",),
        "jobs": ("compile", "match", "plan"),
        "machine": ("demo", "doctor", "warm"),
        "networking": ("network", "site"),
        "publishing": ("listen", "publish", "subscriptions"),
        "reporting": ("report",),
        "running": ("run", "stream"),
        "serving": ("serve", "service"),
        "snapshots": ("snapshot",),
        "validating": ("convert", "validate"),
    }.items()
    for command in commands
}
"""The module of each command, which is loaded when the command is asked for."""
ADDING = {"report": "networking"}
"""Modules that have more commands for a group of another."""


class _Interrupted(click.ClickException):
    exit_code = 130


class _Group(_Command, click.Group):
    command_class = _Command
    group_class: type[click.Group] | type[type] | None = type

    def invoke(self, ctx: click.Context) -> None:
        try:
            super().invoke(ctx)
        except KeyboardInterrupt:
            # Before click sees it and prints an empty line.
            raise _Interrupted("interrupted") from None


class _Root(_Group):
    """Finds commands by name: one that runs loads no other."""

    group_class = _Group

    def list_commands(self, _: click.Context) -> list[str]:
        return sorted(HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        # One that there is not may be meant for any: what is suggested is among those that are loaded.
        for name in [cmd_name] if cmd_name in HOMES else HOMES:
            import_module(f"headgate.cli.{HOMES[name]}")
            if name in ADDING:
                import_module(f"headgate.cli.{ADDING[name]}")
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Root, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="headgate")
@click.option(
    "--kinds",
    multiple=True,
    metavar="MODULE",
    help="A Python module with a KIND: a kind of content of your own. May be repeated.",
)
def cli(kinds: tuple[str, ...]) -> None:
    r"""Content-based publish/subscribe: standing filters, events, and who gets what.

    \b
    Begin with:
      headgate doctor        what this machine lacks
      headgate demo          an advertising workload, from nothing to a report
    """
    if kinds:
        # In the environment, because workers look there, too.
        os.environ["HEADGATE_KINDS"] = ",".join(kinds)


quiet_option = click.option("--quiet", is_flag=True, help="Show no progress.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")


def where_options(*, engine: bool = True) -> Callable[[Decorated], Decorated]:
    """Add the options of every command that runs on Spark, or may run here; the command gets a `Where`."""

    def add(command: Decorated) -> Decorated:
        return options_of(Where, without=() if engine else ("engine",))(quiet_option(json_option(command)))

    return add


def run_job(
    where: Where, large: str | None, here: Callable[[], _T], on_spark: Callable[[Session], _T], *, quiet: bool
) -> _T:
    """Run a job in this process or on Spark; `large` says why it is none for this process.

    What this process cannot read for certain as Spark would is read by Spark, unless --engine says where.
    """
    from headgate.tables.places import UnsureError

    if where.engine == "local" and (where.master is not None or where.conf):
        raise click.UsageError("--master and --conf are for Spark: leave them out, or --engine local")
    if is_here(where, large):
        try:
            return here()
        except UnsureError as error:
            if where.engine is not None:
                raise TableError(f"{error}: that is left to Spark, so leave --engine local out") from None
            if not quiet:
                click.echo(f"running on Spark: {error}", err=True)
    with session(where, quiet=quiet) as spark:
        return on_spark(spark)


def run_on(where: Where, large: str | None, run: Callable[[Runner], _T], *, quiet: bool) -> _T:
    """Run a job over a runner, as `run_job` does."""

    def here() -> _T:
        from headgate.local.runner import LocalRunner

        return run(LocalRunner(quiet))

    def on_spark(spark: Session) -> _T:
        from headgate.spark.runner import SparkRunner

        return run(SparkRunner(spark, quiet))

    return run_job(where, large, here, on_spark, quiet=quiet)


def is_here(where: Where, large: str | None) -> bool:
    """Tell whether a job is tried in this process first."""
    chosen = where.engine is None and where.master is None and not where.conf
    return where.engine == "local" or (chosen and large is None)


def prepare(where: Where, large: str | None) -> None:
    """Make ready for a job where it will run: refuse what Spark cannot be started with, or load Arrow alone.

    To be called before anything that takes long to load.
    """
    if is_here(where, large):
        _load_arrow()
    else:
        ready(where)


def _load_arrow() -> None:
    """Load Arrow without pandas, which it loads for its first array if it can, and which nothing here needs.

    It does not look for pandas again, so only in a process of our own.
    """
    if click.get_current_context().find_root().obj is not ALONE or "pandas" in sys.modules:
        return
    import pyarrow as pa

    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        pa.array(())
    finally:
        sys.meta_path.remove(absent)


class _Absent(MetaPathFinder):
    """Says that pandas is not installed."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


@contextmanager
def session(where: Where, *, quiet: bool) -> Iterator[Session]:
    """Hold a Spark session while a command works."""
    ready(where)
    from headgate.runtime.progress import step
    from headgate.spark.session.session import close_session, open_session

    with step("starting Spark", quiet=quiet):
        session = open_session(where.master, settings=where.conf)
    try:
        yield session
    finally:
        close_session(session)


@contextmanager
def counting(title: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show on stderr how many of how many are done: a bar on a terminal, a line now and then elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, quiet=quiet)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(title, total=None)
        spoke = began = time.monotonic()

        def tell_done(done: int, total: int) -> None:
            nonlocal spoke
            bar.update(task, completed=done, total=total)
            now = time.monotonic()
            if not console.is_terminal and now - spoke > _EVERY:
                spoke = now
                console.print(f"{title}: {done} of {total}, {now - began:.0f} s", highlight=False)

        yield tell_done


def ready(where: Where) -> None:
    """Refuse what Spark cannot be started with, and a machine without it.

    To be called before anything that takes long to load.
    """
    if where.master is not None:
        check_master(where.master)
    need("spark")


def shown_command(arguments: Sequence[str]) -> str:
    """Return a command for others to see: no users and passwords, and no values that may be secret.

    >>> shown_command(["run", "p.toml", "--conf", "spark.hadoop.fs.s3a.secret.key=abc", "--fresh"])
    "headgate run p.toml --conf 'spark.hadoop.fs.s3a.secret.key=…' --fresh"
    >>> shown_command(["run", "p.toml", "--set", "stream.events=nats://ann:abc@host/EVENTS"])
    'headgate run p.toml --set stream.events=nats://host/EVENTS'
    """
    from headgate.pipeline.file.model import without_secrets

    words = []
    for before, each in pairwise(["", *arguments]):
        option, sign, pair = each.partition("=")
        if before in _NAMED:
            words.append(_shown_pair(before, each))
        elif option in _NAMED and sign:
            words.append(f"{option}={_shown_pair(option, pair)}")
        else:
            words.append(without_secrets(each))
    return shlex.join(["headgate", *words])


def _shown_pair(option: str, text: str) -> str:
    """Keep the name; keep the value unless it may be secret. What a broker is told may be anything."""
    from headgate.pipeline.file.model import without_secrets

    name, sign, value = text.partition("=")
    secret = option == "--option" or name.strip() in _OTHERS or _SECRET.search(name) or _INSIDE.search(value)
    return f"{name}{sign}…" if secret and sign else without_secrets(text)


def tell(result: dict[str, Any] | list[Any], lines: list[str], *, as_json: bool) -> None:
    """Print a result, for machines or for people."""
    if as_json:
        lines = [json.dumps(result, default=str, ensure_ascii=False)]
    for line in lines:
        click.echo(named(line), err=is_taken())


def fields_of(done: DataclassInstance) -> dict[str, Any]:
    """Return the fields of a result for JSON: named tuples as objects, and what there is none of left out."""
    values = {}
    for field in fields(done):
        value = getattr(done, field.name)
        if value is not None:
            values[field.name] = value._asdict() if hasattr(value, "_asdict") else value
    return values


def refused_line(rejected: int, what: str, table: str) -> str:
    """Say how many rows were refused, and where the reasons are."""
    return f"refused {rejected:,} {what}, with the reasons in {table}" if rejected else "refused none"
