"""Commands about this machine: what it lacks, and a demo of what it can do."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from headgate.cli.shell import cli, counting, ready, spark_options, tell


@cli.command()
@click.option("--deep", is_flag=True, help="Also start Spark and run a small job (about ten seconds).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def doctor(*, deep: bool, as_json: bool) -> None:
    r"""Say what is missing on this machine, and how to get it.

    \b
    Example:
      headgate doctor --deep
    """
    from headgate.cli.doctor import examine

    findings = examine(deep=deep)
    lines = []
    for finding in findings:
        lines.append(f"{'ok ' if finding.ok else 'NO '} {finding.name}: {finding.found}")
        if not finding.ok:
            lines.append(f"    {finding.advice}")
    sound = all(finding.ok for finding in findings)
    lines.append("all is there" if sound else "something is missing, see above")
    tell({"ok": sound, "findings": [asdict(finding) for finding in findings]}, lines, as_json=as_json)
    if not sound:
        sys.exit(1)


@cli.command()
@click.argument("rooms", metavar="[ROOM]...", nargs=-1)
@click.option(
    "--native", is_flag=True, help="Make code for this very processor, which others may not be able to run."
)
@click.option(
    "--processes", type=click.IntRange(min=1), help="How many compile at a time; by default one a core."
)
@click.option(
    "--copy-to",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also copy the machine code of all rooms to this directory, as a wheel carries it.",
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def warm(
    rooms: tuple[str, ...],
    processes: int | None,
    copy_to: Path | None,
    *,
    native: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Compile all kernels ahead of time, or those of the rooms named.

    A kernel that is compiled already is left alone. Where Headgate was installed from a wheel of this kind of
    processor, all of them are.

    \b
    Example:
      headgate warm records graph
    """
    from headgate.core.jit import signatures

    for room in rooms:
        if room not in signatures.rooms():
            known = ", ".join(signatures.rooms())
            raise click.UsageError(f"{room!r} is no room with kernels: those are {known}")
    if rooms and copy_to:
        raise click.UsageError("--copy-to takes all rooms: name none")
    from headgate.core.jit.warming import copy_code
    from headgate.core.jit.warming import warm as compile_all

    with counting("compiling kernels", quiet=quiet) as tell_done:
        done = compile_all(rooms, native=native, processes=processes, tell=tell_done)
    result: dict[str, object] = {
        "processor": done.target.cpu,
        "ready": done.ready,
        "compiled": done.compiled,
        "seconds": round(done.seconds, 1),
        "removed": done.removed,
    }
    lines = [f"kernels for {done.target.cpu}: {done.compiled} compiled, {done.ready} were ready"]
    if copy_to is not None:
        size = copy_code(done.target, copy_to)
        result["bytes"] = size
        lines.append(f"copied to {copy_to}: {size / 1e6:.1f} MB")
    tell(result, lines, as_json=as_json)


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

    It is a pipeline file, which is left in the directory: change it, and give it to headgate run.

    \b
    Example:
      headgate demo --subscriptions 10000 --events 2000
    """
    from headgate.pipeline.demo import Demo, check_place, run_demo, summary_lines

    check_place(output)
    chosen = ready(master, conf)
    outcome = run_demo(Demo(output, subscriptions, events, seed, master, chosen, quiet))
    report = outcome.report
    refused = {each.what: each.rows for each in report.rejected}
    result = {
        "subscriptions": report.counts.subscriptions,
        "rejected_subscriptions": refused["subscriptions"],
        "events": report.counts.events,
        "rejected_events": refused["events"],
        "matches": report.counts.matches,
        "events_per_second": report.counts.events_per_second,
        "steps": {found.name: round(found.seconds, 3) for found in report.steps},
        "seconds": round(outcome.seconds, 3),
        "pipeline": str(outcome.file),
        "report": str(outcome.page),
    }
    tell(result, summary_lines(outcome), as_json=as_json)
