"""Commands that run on: a pipeline file, step after step, and events as they come."""

from __future__ import annotations

import re
import signal
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.documents import format_option
from headgate.cli.shell import (
    STRICT_EXIT,
    cli,
    engine_option,
    factor_option,
    fields_of,
    mode_option,
    read_factors,
    ready,
    session,
    settings,
    shown_command,
    spark_options,
    tell,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.pipeline.file.model import Pipeline
    from headgate.pipeline.run.run import Outcome


_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class _Seconds(click.ParamType[float]):
    """A time: 30, 90s, 10m, 2h or 1d."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", str(value).strip())
        if found is None:
            self.fail(f"{value!r} is no time: write 30, 90s, 10m, 2h or 1d", param, ctx)
        return float(found[1]) * _UNITS[found[2]]


SECONDS = _Seconds()


@cli.command()
@click.option(
    "--snapshot", required=True, metavar="DIRECTORY", help="What compile wrote; it may be replaced."
)
@click.option(
    "--events",
    required=True,
    metavar="PLACE",
    help="A folder that files are moved to, nats://… or kafka://….",
)
@click.option("--output", required=True, metavar="PLACE", help="A folder for matches, nats://… or kafka://….")
@click.option("--state", required=True, metavar="DIRECTORY", help="What the stream remembers; its own alone.")
@click.option("--changes", metavar="PLACE", help="A folder for files of changed subscriptions, or nats://….")
@click.option(
    "--dead-letters", metavar="FOLDER", help="Where other events go.  [default: OUTPUT-dead-letters]"
)
@click.option(
    "--rejected-changes",
    metavar="FOLDER",
    help="Where refused changes go.  [default: OUTPUT-rejected-changes]",
)
@click.option(
    "--files", "form_of_files", type=click.Choice(["parquet", "jsonl"]), default="parquet", show_default=True,
    help="The format of files of matches and dead letters.",
)  # fmt: skip
@click.option("--top", type=click.IntRange(0), metavar="K", help="Only the best K of each event.")
@mode_option
@factor_option
@format_option
@click.option("--every", type=SECONDS, default=0.5, metavar="TIME", help="Between batches.  [default: 0.5]")
@click.option("--once", is_flag=True, help="Match what is there, then end.")
@click.option("--seconds", type=SECONDS, metavar="TIME", help="End after so long.")
@click.option("--max-files", type=click.IntRange(1), metavar="N", help="Files of one batch, at most.")
@click.option(
    "--max-bytes", type=click.IntRange(1), metavar="N", help="Bytes of the files of one batch, about."
)
@click.option(
    "--max-rows", type=click.IntRange(1), metavar="N", help="A broker's messages in one batch, at most."
)
@click.option(
    "--finished",
    default="keep",
    metavar="WHAT",
    help="Files that are done: keep (default), delete, archive:FOLDER.",
)
@click.option("--time", "time_of", default="time", metavar="NAME", help="The attribute with a record's time.")
@click.option(
    "--lateness", type=SECONDS, metavar="TIME", help="Events older than the newest by more are late."
)
@click.option(
    "--window", type=SECONDS, default=600.0, metavar="TIME",
    help="How long the same id is a duplicate; 0 for never.  [default: 10m]",
)  # fmt: skip
@click.option(
    "--fold", type=click.IntRange(1), default=10_000, metavar="N", help="Fold the log after N changes."
)
@click.option("--keep", type=click.IntRange(1), default=1000, metavar="N", help="Records of batches to keep.")
@click.option("--progress", type=SECONDS, default=5.0, metavar="TIME", help="Between lines.  [default: 5]")
@click.option("--metrics", metavar="FILE", help="Write metrics for Prometheus there.")
@click.option(
    "--metrics-port", type=click.IntRange(0, 65535), metavar="PORT", help="Serve them at this port."
)
@click.option("--report", metavar="FILE", help="Write a page about the run there when it ends (.html).")
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE", help="More for a broker; may be repeated."
)
@spark_options
def stream(master: str | None, conf: tuple[str, ...], *, quiet: bool, as_json: bool, **given: Any) -> None:
    r"""Match events as they come, each match once, whatever dies meanwhile.

    Files must be moved into the folder whole: .jsonl, .parquet, and documents of RDF or XML. Matches go to
    files named by batch; events that are malformed, late, duplicates or from no node of the graph go to dead
    letters, with the reason. Changes of subscriptions take effect with the next batch: rows with op
    (subscribe, unsubscribe, score, weights) and id, filter, dialect, score, weights, node.
    Interrupted, it ends after the batch under way. Run it again with the same state, and it goes on.

    \b
    Examples:
      headgate stream --snapshot snapshot/ --events in/ --output matches/ --state state/
      headgate stream --snapshot snapshot/ --events in/ --output matches/ --state state/ --once --files jsonl
      headgate stream --snapshot snapshot/ --events in/ --changes changes/ --output matches/ --state state/ \
    --lateness 1h --window 10m --finished archive:done/
    """
    from headgate.brokers.nats.settings import shown
    from headgate.spark.stream.request import check_request
    from headgate.spark.stream.settings import StreamSettings

    factors = read_factors(given.pop("factors"))
    window = given.pop("window")
    wanted = StreamSettings(
        format=given.pop("form_of_files"),
        content_type=given.pop("form"),
        mode=given.pop("mode") or "exact",
        factors=factors,
        time=given.pop("time_of"),
        window=window or None,
        options=settings(given.pop("options")),
        **given,
    )
    check_request(wanted)
    ready(master, conf)
    from headgate.pipeline.run.stream_history import run_told

    with stopping() as stop, session(master, conf, quiet=quiet) as spark:
        done = run_told(spark, wanted, stop=stop, quiet=quiet, command=shown_command(sys.argv[1:]))
    dead = done.malformed + done.late + done.duplicate + done.unknown_source + done.left_out
    counted = f"{done.events:,} events in {done.batches:,} batches"
    lines = [
        f"matched {counted}: {done.matches:,} matches in {shown(wanted.output)}",
        f"{dead:,} dead letters, with the reasons in {wanted.dead}" if dead else "no dead letters",
    ]
    if done.changes or done.rejected_changes:
        refused = "refused none"
        if done.rejected_changes:
            refused = f"refused {done.rejected_changes:,}, with the reasons in {wanted.rejected}"
        lines.append(f"took {done.changes:,} changes of subscriptions, {refused}")
    if wanted.report is not None:
        lines.append(f"the page about the run is {wanted.report}")
    places = {"output": shown(wanted.output), "dead_letters": wanted.dead, "state": wanted.state}
    places |= {"report": wanted.report} if wanted.report is not None else {}
    tell({**fields_of(done), **places}, lines, as_json=as_json)


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Turn the first SIGINT or SIGTERM into a wish to end; the second one ends at once."""
    stop = threading.Event()
    before: dict[int, Any] = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, before[number])

    for number in before:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@cli.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--dry-run", is_flag=True, help="Check everything, print the plan and sizes, and do nothing.")
@click.option("--fresh", is_flag=True, help="Do everything anew, also what is done already.")
@click.option("--until", "last", metavar="STEP", help="End after this step.")
@click.option(
    "--set",
    "values",
    multiple=True,
    metavar="TABLE.KEY=VALUE",
    help="Instead of what the file says; may be repeated.",
)
@click.option("--strict", is_flag=True, help="Exit with 3 if any row was refused.")
@engine_option
@spark_options
def run(
    file: Path,
    last: str | None,
    values: tuple[str, ...],
    engine: str | None,
    master: str | None,
    conf: tuple[str, ...],
    *,
    dry_run: bool,
    fresh: bool,
    strict: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Run a pipeline that a file describes: compile, match, plan and report.

    What is done already and has not changed is passed over, so a run that was stopped goes on where it was.
    The report and all other outputs land in the pipeline's directory.

    \b
    Examples:
      headgate run pipeline.toml --dry-run
      headgate run pipeline.toml
      headgate run pipeline.toml --until compile
      headgate run pipeline.toml --set match.top=20 --set events.table=monday.parquet --fresh
    """
    from headgate.pipeline.file.read import read_pipeline
    from headgate.pipeline.file.setting import PipelineError, read_overrides
    from headgate.pipeline.run.plan import steps_of, until

    try:
        overrides = read_overrides(values)
    except ValueError as error:
        raise click.UsageError(f"--set {error}: write TABLE.KEY=VALUE") from None
    chosen = settings(conf)
    try:
        pipeline = read_pipeline(file, overrides)
        until(steps_of(pipeline), last)
        ready(master, conf)
        if dry_run:
            _rehearse(pipeline, last, fresh=fresh, quiet=quiet, as_json=as_json)
            return
        from headgate.pipeline.run.run import RunOptions, run_pipeline

        command = shown_command(sys.argv[1:])
        done = run_pipeline(
            pipeline, RunOptions(fresh, last, engine, master, chosen, quiet, command, stopping)
        )
    except PipelineError as error:
        # All that is wrong, one line each; the last of them as every error is told.
        for line in error.lines:
            click.echo(f"headgate: {line}", err=True)
        sys.exit(error.exit_code)
    tell(_result(done), _lines(done), as_json=as_json)
    if strict and done.refused:
        sys.exit(STRICT_EXIT)


def _rehearse(pipeline: Pipeline, last: str | None, *, fresh: bool, quiet: bool, as_json: bool) -> None:
    from headgate.pipeline.dry_run.dry_run import rehearse

    rehearsed = rehearse(pipeline, last, fresh=fresh, quiet=quiet)
    tell(rehearsed.as_json, rehearsed.lines, as_json=as_json)


def _result(done: Outcome) -> dict[str, Any]:
    left_out = {"batches", "events_by_matches", "busiest"}
    steps = [
        {
            "name": each.name,
            "status": each.status,
            "seconds": round(each.seconds, 3),
            **{name: value for name, value in each.result.items() if name not in left_out},
        }
        for each in done.steps
    ]
    return {
        "pipeline": done.pipeline.about.name,
        "steps": steps,
        "rejected": done.refused,
        "seconds": round(done.seconds, 3),
        "stream": None if done.streamed is None else fields_of(done.streamed),
        "report": None if done.page is None else str(done.page),
        "run": str(done.json),
    }


def _lines(done: Outcome) -> list[str]:
    from headgate.pipeline.run.plan import steps_of
    from headgate.pipeline.run.reporting import told

    steps = {step.name: step for step in steps_of(done.pipeline)}
    width = max(len(each.name) for each in done.steps)
    lines = [
        f"{each.name:<{width}}  {each.status:<7}  {each.seconds:>7.1f} s{told(steps[each.name], each.result)}"
        for each in done.steps
    ]
    if (found := done.streamed) is not None:
        dead = found.malformed + found.late + found.duplicate + found.unknown_source + found.left_out
        lines.append(
            f"stream: {found.events:,} events in {found.batches:,} batches, {found.matches:,} matches, "
            f"{dead:,} dead letters"
        )
    lines.append(f"refused {done.refused:,} rows" if done.refused else "refused none")
    lines.append(f"report: {done.page}" if done.page else f"for machines: {done.json}")
    return lines
