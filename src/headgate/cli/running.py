"""The command that runs a pipeline file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.shell import (
    STRICT_EXIT,
    cli,
    fields_of,
    ready,
    settings,
    shown_command,
    spark_options,
    tell,
)

if TYPE_CHECKING:
    from headgate.pipeline.file.model import Pipeline
    from headgate.pipeline.run.run import Outcome


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
@spark_options
def run(
    file: Path,
    last: str | None,
    values: tuple[str, ...],
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
        from headgate.cli.streaming import stopping
        from headgate.pipeline.run.run import Asked, run_pipeline

        command = shown_command(sys.argv[1:])
        done = run_pipeline(pipeline, Asked(fresh, last, master, chosen, quiet, command, stopping))
    except PipelineError as error:
        # All that is wrong, one line each; the last of them as every error is told.
        for line in error.lines:
            click.echo(f"headgate: {line}", err=True)
        sys.exit(error.exit_code)
    tell(_result(done), _lines(done), as_json=as_json)
    if strict and done.refused:
        sys.exit(STRICT_EXIT)


def _rehearse(pipeline: Pipeline, last: str | None, *, fresh: bool, quiet: bool, as_json: bool) -> None:
    from headgate.pipeline.rehearsal.rehearsal import rehearse

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
