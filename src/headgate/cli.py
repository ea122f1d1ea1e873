"""The command line: thin commands, heavy imports inside them.

Exit codes: 0 done; 1 refused, with one line on stderr; 2 wrong usage; 3 done, but rows were refused and
`--strict` was given; 130 interrupted.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate import __version__
from headgate.errors import HeadgateError, SubscriptionError, TableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headgate.records.explain import Explanation
    from headgate.spark.session import Session

STRICT_EXIT = 3


def main() -> None:
    """Run the command line; every foreseen error is one line on stderr."""
    try:
        cli.main(prog_name="headgate", standalone_mode=False)
    except click.exceptions.Abort:
        _fail("interrupted", 130)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(2)
    except click.UsageError as error:
        help_of = error.ctx.command_path if error.ctx else "headgate"
        _fail(f"{error.format_message()} (see {help_of} --help)", 2)
    except click.ClickException as error:
        _fail(error.format_message(), error.exit_code)
    except HeadgateError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except OSError as error:
        # The disk is full, a place cannot be written: the machine's fault, and its words are clear.
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), 1)


def _fail(message: str, code: int) -> None:
    line = " ".join(message.split())
    click.echo(f"headgate: {line}", err=True)
    sys.exit(code)


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
def _session(master: str | None, conf: tuple[str, ...], *, quiet: bool) -> Iterator[Session]:
    from headgate.spark.progress import step
    from headgate.spark.session import close_session, open_session

    settings = _settings(conf)
    with step("starting Spark", quiet=quiet):
        session = open_session(master, settings=settings)
    try:
        yield session
    finally:
        close_session(session)


def _settings(conf: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for entry in conf:
        name, sign, value = entry.partition("=")
        if not sign:
            raise click.UsageError(f"--conf {entry}: write NAME=VALUE")
        settings[name.strip()] = value.strip()
    return settings


def _beside(path: str, word: str) -> str:
    """Name the rejected table after the output: out/snapshot -> out/snapshot-rejected.jsonl."""
    place = Path(path.rstrip("/")).absolute() if Path(path).name in {"", ".."} else Path(path.rstrip("/"))
    return str(place.with_name(f"{place.stem if place.suffix else place.name}-{word}.jsonl"))


def _tell(result: dict[str, Any], lines: list[str], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(result, default=str, ensure_ascii=False))
    else:
        for line in lines:
            click.echo(line)


@cli.command()
@click.option("--deep", is_flag=True, help="Also start Spark and run a small job (about ten seconds).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def doctor(*, deep: bool, as_json: bool) -> None:
    r"""Say what is missing on this machine, and how to get it.

    \b
    Example:
      headgate doctor --deep
    """
    from headgate.doctor import examine

    findings = examine(deep=deep)
    lines = []
    for finding in findings:
        lines.append(f"{'ok ' if finding.ok else 'NO '} {finding.name}: {finding.found}")
        if not finding.ok:
            lines.append(f"    {finding.advice}")
    sound = all(finding.ok for finding in findings)
    lines.append("all is there" if sound else "something is missing, see above")
    _tell({"ok": sound, "findings": [asdict(finding) for finding in findings]}, lines, as_json=as_json)
    if not sound:
        sys.exit(1)


@cli.command()
@click.option(
    "--output", default="headgate-demo", show_default=True, type=click.Path(path_type=Path, file_okay=False)
)
@click.option("--subscriptions", default=100_000, show_default=True, type=click.IntRange(min=1))
@click.option("--events", default=20_000, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=1, show_default=True, type=int, help="The same seed gives the same workload.")
@spark_options
def demo(
    output: Path,
    subscriptions: int,
    events: int,
    seed: int,
    master: str | None,
    conf: tuple[str, ...],
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Generate an advertising workload, compile it, match it on Spark, and write a report.

    \b
    Example:
      headgate demo --subscriptions 10000 --events 2000
    """
    from headgate.demo import Demo, run_demo, summary_lines

    outcome = run_demo(Demo(output, subscriptions, events, seed, master, _settings(conf), quiet))
    report = outcome.report
    result = {
        "subscriptions": report.subscriptions,
        "rejected_subscriptions": report.rejected_subscriptions,
        "events": report.events,
        "rejected_events": report.rejected_events,
        "matches": report.matches,
        "events_per_second": report.events_per_second,
        "steps": {found.name: round(found.seconds, 3) for found in report.steps},
        "seconds": round(outcome.seconds, 3),
        "report": str(outcome.page),
    }
    _tell(result, summary_lines(outcome), as_json=as_json)


@cli.command(name="compile")
@click.option(
    "--subscriptions", required=True, metavar="TABLE", help="Columns: id, filter, and perhaps dialect."
)
@click.option("--output", required=True, metavar="DIRECTORY", help="Where the snapshot goes.")
@click.option("--rejected", metavar="TABLE", help="Where refused rows go.  [default: OUTPUT-rejected.jsonl]")
@click.option(
    "--schema", metavar="FILE", help="JSON with the attributes' types; filters are checked against it."
)
@click.option("--strict", is_flag=True, help="Exit with 3 if any row was refused.")
@spark_options
def compile_(
    subscriptions: str,
    output: str,
    rejected: str | None,
    schema: str | None,
    master: str | None,
    conf: tuple[str, ...],
    *,
    strict: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Compile a table of subscriptions to a snapshot.

    Tables are .jsonl, .csv or .parquet. Rows that are refused land in the rejected table with the reason.

    \b
    Example:
      headgate compile --subscriptions subs.jsonl --output snapshot/
    """
    from headgate.spark.compile import check_request, compile_subscriptions

    refused = rejected or _beside(output, "rejected")
    types = _read_text(schema) if schema else None
    check_request(subscriptions, output, rejected=refused, schema=types)
    with _session(master, conf, quiet=quiet) as session:
        done = compile_subscriptions(
            session, subscriptions, output, rejected=refused, schema=types, quiet=quiet
        )
    lines = [
        f"compiled {done.subscriptions:,} subscriptions over {len(done.attributes)} attributes to {output}"
    ]
    lines.append(
        f"refused {done.rejected:,} rows, with the reasons in {refused}" if done.rejected else "refused none"
    )
    _tell({**asdict(done), "snapshot": output, "rejected_table": refused}, lines, as_json=as_json)
    if strict and done.rejected:
        sys.exit(STRICT_EXIT)


@cli.command()
@click.option("--snapshot", required=True, metavar="DIRECTORY", help="What compile wrote.")
@click.option("--events", required=True, metavar="TABLE", help="Columns: id and the attributes.")
@click.option("--output", required=True, metavar="TABLE", help="Where (event_id, subscription_id) goes.")
@click.option(
    "--rejected", metavar="TABLE", help="Where refused events go.  [default: OUTPUT-rejected.jsonl]"
)
@click.option("--strict", is_flag=True, help="Exit with 3 if any event was refused.")
@spark_options
def match(
    snapshot: str,
    events: str,
    output: str,
    rejected: str | None,
    master: str | None,
    conf: tuple[str, ...],
    *,
    strict: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Match a table of events against a snapshot.

    Tables are .jsonl, .csv or .parquet; JSON lines and CSV are written as one file, Parquet as a directory.

    \b
    Example:
      headgate match --snapshot snapshot/ --events events.jsonl --output matches.jsonl
    """
    from headgate.core.snapshot import open_snapshot
    from headgate.records.index import ROOM
    from headgate.spark.match import check_request, match_events

    refused = rejected or _beside(output, "rejected")
    check_request(snapshot, events, output, rejected=refused)
    open_snapshot(Path(snapshot), ROOM)
    with _session(master, conf, quiet=quiet) as session:
        done = match_events(session, snapshot, events, output, rejected=refused, quiet=quiet)
    lines = [f"matched {done.events:,} events: {done.matches:,} matches in {output}"]
    lines.append(
        f"refused {done.rejected:,} events, with the reasons in {refused}"
        if done.rejected
        else "refused none"
    )
    if done.unknown_attributes:
        lines.append(f"note: no event has {', '.join(done.unknown_attributes)}, so filters see NULL there")
    result = {key: value for key, value in asdict(done).items() if key != "batches"}
    _tell({**result, "output": output, "rejected_table": refused}, lines, as_json=as_json)
    if strict and done.rejected:
        sys.exit(STRICT_EXIT)


@cli.command()
@click.option("--filter", "filter_text", required=True, metavar="SQL", help="The filter to try.")
@click.option("--events", required=True, metavar="TABLE", help="Historic events.")
@click.option("--output", metavar="TABLE", help="Where the matching events go.")
@spark_options
def backtest(
    filter_text: str,
    events: str,
    output: str | None,
    master: str | None,
    conf: tuple[str, ...],
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Try one filter over historic events, evaluated by Spark SQL itself.

    \b
    Example:
      headgate backtest --filter "age > 30 AND topic = 'news'" --events events.jsonl
    """
    from headgate.records.parse import parse_filter
    from headgate.spark.backtest import backtest as run
    from headgate.spark.backtest import check_request

    parse_filter(filter_text)
    check_request(events, output)
    with _session(master, conf, quiet=quiet) as session:
        done = run(session, filter_text, events, output=output, quiet=quiet)
    share = f"{done.matches / done.events:.2%}" if done.events else "none"
    lines = [f"{done.matches:,} of {done.events:,} events match ({share})"]
    if done.sample:
        lines.append(f"for example {', '.join(done.sample)}")
    if done.rejected:
        lines.append(f"{done.rejected:,} lines could not be read")
    if output:
        lines.append(f"the matching events are in {output}")
    _tell(asdict(done), lines, as_json=as_json)


@cli.command()
@click.option(
    "--event", required=True, metavar="JSON", help="The event's attributes; - reads standard input."
)
@click.option("--filter", "filter_text", metavar="SQL", help="The filter to explain.")
@click.option("--snapshot", metavar="DIRECTORY", help="Or a snapshot, with --subscription.")
@click.option("--subscription", metavar="ID", help="Which subscription of the snapshot.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def explain(
    event: str, filter_text: str | None, snapshot: str | None, subscription: str | None, *, as_json: bool
) -> None:
    r"""Say why an event matches a filter or not, clause by clause, with the nearest miss.

    \b
    Examples:
      headgate explain --filter "age > 30 AND topic = 'news'" --event '{"age": 35, "topic": "sport"}'
      headgate explain --snapshot snapshot/ --subscription s1 --event '{"age": 35}'
    """
    from headgate.core.event import Event, read_object
    from headgate.records.explain import explain as explain_filter
    from headgate.records.index import RecordIndex
    from headgate.records.parse import parse_filter

    found: Explanation
    data = Event("", read_object(sys.stdin.buffer.read() if event == "-" else event))
    if filter_text is not None and snapshot is None and subscription is None:
        found = explain_filter(parse_filter(filter_text), data.attributes)
    elif filter_text is None and snapshot is not None and subscription is not None:
        index = RecordIndex.open(Path(snapshot))
        found = index.explain(data, _identity(subscription, numbered=index.ids.numbered))
    else:
        raise click.UsageError("give --filter, or --snapshot and --subscription")
    _tell(asdict(found), _explanation(found), as_json=as_json)


def _identity(text: str, *, numbered: bool) -> str | int:
    if not numbered:
        return text
    try:
        return int(text)
    except ValueError:
        raise SubscriptionError(
            f"there is no subscription {text!r} here: the ids of this snapshot are whole numbers"
        ) from None


def _explanation(found: Explanation) -> list[str]:
    signs = {True: "held", False: "failed", None: "unknown"}
    lines = ["match" if found.matches else "no match"]
    width = max(len(clause.text) for clause in found.clauses)
    for clause in found.clauses:
        value = f"{clause.attribute} = {_shown(clause.value)}" if clause.attribute else ""
        note = f" ({clause.note})" if clause.note else ""
        lines.append(f"  {signs[clause.held]:8}{clause.text:{width}}   {value}{note}".rstrip())
    if not found.matches:
        missing = " AND ".join(clause.text for clause in found.nearest_miss)
        lines.append(f"nearest miss: {missing or 'none, no event can match this filter'}")
    return lines


def _shown(value: object) -> str:
    return "NULL" if value is None else json.dumps(value, default=str, ensure_ascii=False)


@cli.group()
def generate() -> None:
    """Generate workloads."""


@generate.command(name="records")
@click.option(
    "--output", required=True, metavar="DIRECTORY", type=click.Path(path_type=Path, file_okay=False)
)
@click.option("--subscriptions", default=100_000, show_default=True, type=click.IntRange(min=0))
@click.option("--events", default=20_000, show_default=True, type=click.IntRange(min=0))
@click.option("--seed", default=1, show_default=True, type=int, help="The same seed gives the same rows.")
@click.option("--format", "form", default="jsonl", show_default=True, type=click.Choice(["jsonl", "parquet"]))
@spark_options
def generate_records(
    output: Path,
    subscriptions: int,
    events: int,
    seed: int,
    form: str,
    master: str | None,
    conf: tuple[str, ...],
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Generate the advertising workload: subscriptions and events.

    \b
    Example:
      headgate generate records --output ads/ --subscriptions 1000 --events 500
    """
    from headgate.spark.generate import generate as run
    from headgate.spark.tables import check_output
    from headgate.workloads import advertising

    places = {
        "subscriptions": str(output / f"subscriptions.{form}"),
        "events": str(output / f"events.{form}"),
    }
    for place in places.values():
        check_output(place)
    with _session(master, conf, quiet=quiet) as session:
        schema = advertising.subscription_schema()
        run(
            session,
            advertising.subscriptions,
            schema,
            subscriptions,
            places["subscriptions"],
            seed=seed,
            quiet=quiet,
        )
        run(
            session,
            advertising.events,
            advertising.schema(),
            events,
            places["events"],
            seed=seed,
            quiet=quiet,
        )
    lines = [f"wrote {subscriptions:,} subscriptions to {places['subscriptions']}"]
    lines.append(f"wrote {events:,} events to {places['events']}")
    _tell({**places, "seed": seed}, lines, as_json=as_json)


def _read_text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise TableError(f"{path} cannot be read: {reason}") from None
