"""Commands that run on: a pipeline file, step after step, and events as they arrive."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.cli import shell
from headgate.cli.options import options_of
from headgate.pipeline.run.request import Run
from headgate.stream.settings import StreamSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.pipeline.file.model import Pipeline
    from headgate.pipeline.run.run import Outcome
    from headgate.spark.session.session import Session
    from headgate.stream.reporting import StreamResult
    from headgate.tables.settings import Where


@shell.cli.command()
@options_of(StreamSettings)
@shell.where_options()
def stream(asked: StreamSettings, where: Where, *, quiet: bool, as_json: bool) -> None:
    r"""Match events as they arrive, each match once, even if processes are killed.

    Files must be moved into the folder whole: .jsonl, .json, .csv, .parquet, and documents of RDF or XML;
    packed ones end in .gz or .zst besides. Matches go to files named by batch; events that are malformed,
    late, duplicates or from no node of the graph go to dead letters, with the reason. Changes of
    subscriptions take effect with the next batch: rows with op (subscribe, unsubscribe, score, weights) and
    id, filter, dialect, score, weights, node.
    Interrupted, it ends after the batch under way. Run it again with the same state, and it goes on.

    \b
    Examples:
      headgate stream --snapshot snapshot/ --events in/ --output matches/ --state state/
      headgate stream --snapshot snapshot/ --events in/ --output matches/ --state state/ --once --files jsonl
      headgate stream --snapshot snapshot/ --events in/ --changes changes/ --output matches/ --state state/ \
    --lateness 1h --window 10m --finished archive:done/
    """
    from headgate.brokers.nats.settings import shown
    from headgate.local.small_streams import why_stream
    from headgate.stream.request import check_request

    check_request(asked)
    large = why_stream(asked)
    shell.prepare(where, large)
    from headgate.pipeline.run.stream_history import run_told

    with stopping() as stop:

        def job(spark: Session | None = None) -> StreamResult:
            return run_told(spark, asked, stop=stop, quiet=quiet, command=shell.shown_command(sys.argv[1:]))

        done = shell.run_job(where, large, job, job, quiet=quiet)
    dead = done.dead_letters
    counted = f"{done.events:,} events in {done.batches:,} batches"
    lines = [
        f"matched {counted}: {done.matches:,} matches in {shown(asked.output)}",
        f"{dead:,} dead letters, with the reasons in {asked.dead}" if dead else "no dead letters",
    ]
    if done.changes or done.rejected_changes:
        refused = "refused none"
        if done.rejected_changes:
            refused = f"refused {done.rejected_changes:,}, with the reasons in {asked.rejected}"
        lines.append(f"applied {done.changes:,} changes of subscriptions, {refused}")
    if asked.report is not None:
        lines.append(f"the page about the run is {asked.report}")
    places = {"output": shown(asked.output), "dead_letters": asked.dead, "state": asked.state}
    places |= {"report": asked.report} if asked.report is not None else {}
    shell.tell({**shell.fields_of(done), **places}, lines, as_json=as_json)


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


@shell.cli.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@options_of(Run)
@click.option("--strict", is_flag=True, help="Exit with 3 if any row was refused.")
@shell.where_options()
def run(asked: Run, where: Where, file: Path, *, strict: bool, quiet: bool, as_json: bool) -> None:
    r"""Run a pipeline that a file describes: compile, match, plan and report.

    Steps that are done and have not changed are skipped, so a run that was stopped resumes where it was.
    The report and all other outputs land in the pipeline's directory.

    \b
    Examples:
      headgate run pipeline.toml --dry-run
      headgate run pipeline.toml
      headgate run pipeline.toml --until compile
      headgate run pipeline.toml --set match.top=20 --set events.table=monday.parquet --fresh
    """
    from headgate.local.small_streams import why_stream
    from headgate.pipeline.file.model import PipelineError, read_overrides
    from headgate.pipeline.file.read import read_pipeline
    from headgate.pipeline.run.plan import steps_of, until

    try:
        pipeline = read_pipeline(file, read_overrides(asked.overrides))
        until(steps_of(pipeline), asked.until)
        there = pipeline.spark.master or pipeline.spark.conf
        large = None if pipeline.stream is None else why_stream(pipeline.stream)
        shell.prepare(where, "the file asks for Spark" if there else large)
        if asked.dry_run:
            _rehearse(pipeline, asked, quiet=quiet, as_json=as_json)
            return
        from headgate.pipeline.run.run import RunOptions, run_pipeline

        options = (asked.fresh, asked.until, where.engine, where.master, where.conf)
        done = run_pipeline(
            pipeline, RunOptions(*options, quiet, shell.shown_command(sys.argv[1:]), stopping)
        )
    except PipelineError as error:
        # All that is wrong, one line each; the last of them as every error is told.
        for line in error.lines:
            click.echo(f"headgate: {line}", err=True)
        sys.exit(error.exit_code)
    shell.tell(_result(done), _lines(done), as_json=as_json)
    if strict and done.refused:
        sys.exit(shell.STRICT_EXIT)


def _rehearse(pipeline: Pipeline, asked: Run, *, quiet: bool, as_json: bool) -> None:
    from headgate.pipeline.dry_run.dry_run import rehearse

    rehearsed = rehearse(pipeline, asked.until, fresh=asked.fresh, quiet=quiet)
    shell.tell(rehearsed.as_json, rehearsed.lines, as_json=as_json)


def _result(done: Outcome) -> dict[str, Any]:
    return {
        "pipeline": done.pipeline.about.name,
        "steps": [each.as_json for each in done.steps],
        "rejected": done.refused,
        "seconds": round(done.seconds, 3),
        "stream": None if done.streamed is None else shell.fields_of(done.streamed),
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
    if (ended := done.streamed) is not None:
        lines.append(
            f"stream: {ended.events:,} events in {ended.batches:,} batches, {ended.matches:,} matches, "
            f"{ended.dead_letters:,} dead letters"
        )
    lines.append(f"refused {done.refused:,} rows" if done.refused else "refused none")
    lines.append(f"report: {done.page}" if done.page else f"for machines: {done.json}")
    return lines
