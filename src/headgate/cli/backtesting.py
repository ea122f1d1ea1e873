"""The command that tries a filter, or a set of changed subscriptions, over events of the past."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from headgate.cli.documents import feed_lines, refuse_options
from headgate.cli.options import flag_of, options_of
from headgate.cli.shell import cli, fields_of, prepare, run_on, shown_command, tell, where_options
from headgate.contents.settings import PLAIN
from headgate.core.settings import settings_of
from headgate.errors import TableError
from headgate.tables.settings import Backtest, Compile, WhatIf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.backtest.effects import Effect
    from headgate.backtest.effects import WhatIf as Tried
    from headgate.core.settings import Setting
    from headgate.jobs.runner import Runner
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.tables.settings import Where

SHOWN = 10
"""Subscriptions that are told one by one."""


def _options() -> Iterator[Setting]:
    """List the settings of both jobs."""
    one = {each.name: each for each in settings_of(Backtest)}
    other = {each.name: each for each in settings_of(WhatIf)}
    for each in {**one, **other}.values():
        about = one.get(each.name, each).help
        if each.name not in one and each.name != "changes":
            about = f"--changes: {about}"
        elif each.name in one and each.help != about:
            about = f"{about}; with --changes, {each.help}"
        shown = "" if each.name == "output" else each.shown
        yield replace(each, help=about, required=each.name == "events", shown=shown)


@cli.command()
@options_of(SimpleNamespace, _options())
@where_options()
def backtest(given: SimpleNamespace, where: Where, *, quiet: bool, as_json: bool) -> None:
    r"""Try one filter, or a set of changed subscriptions, over historic events.

    A filter of records means what Spark SQL says, one of RDF and XML what our index says. Changes are tried
    against a snapshot: what would newly match, what would no longer, how noisy, and at what cost.

    \b
    Examples:
      headgate backtest --filter "age > 30 AND topic = 'news'" --events events.jsonl
      headgate backtest --filter "ASK { ?x a <urn:Art> }" --dialect sparql --events documents/
      headgate backtest --filter "//news[topic = 'art']" --dialect xpath --events documents/
      headgate backtest --changes changes.jsonl --snapshot snapshot/ --events events.jsonl --output diff.jsonl
      headgate backtest --changes new.csv --snapshot ranked/ --events old.csv --top 10 --report what-if.html
    """
    if (given.filter is None) == (given.changes is None):
        raise click.UsageError("give one of --filter and --changes")
    values = vars(given)
    if given.changes is None:
        for each in settings_of(WhatIf):
            if each.name not in _BOTH and each.given(given):
                raise click.UsageError(f"{flag_of(each)} goes with --changes")
        _one_filter(_taken(Backtest, values), where, quiet=quiet, as_json=as_json)
    else:
        compiled = _taken(Compile, {**values, "snapshot": "", "rejected": None, "changes": None})
        _try_changes(_taken(WhatIf, values), compiled, where, quiet=quiet, as_json=as_json)


_BOTH = {each.name for each in settings_of(Backtest)} | {"changes"}


def _taken(made: type[Any], values: dict[str, Any]) -> Any:
    """Make a request of those values that are its settings."""
    return made(**{each.name: values[each.name] for each in settings_of(made) if each.name in values})


def _one_filter(asked: Backtest, where: Where, *, quiet: bool, as_json: bool) -> None:
    """Try one filter and tell what it would have matched."""
    from headgate.contents.registry import DEFAULT, content_of, kind_of
    from headgate.local.small import why_large
    from headgate.tables.requests import check_backtest, check_taxonomy

    content = content_of([asked.written_in], "the filter") or DEFAULT
    refuse_options(content)
    check_backtest(asked.events, asked.output, content, asked.format)
    check_taxonomy(asked.taxonomy)
    kind_of(content).check_filter(asked.filter, asked.written_in, asked.wanted())
    large = why_large([asked.events])
    prepare(where, large)
    from headgate.jobs.backtest import backtest

    done = run_on(where, large, lambda runner: backtest(runner, **asked.arguments), quiet=quiet)
    share = f"{done.matches / done.events:.2%}" if done.events else "none"
    lines = [f"{done.matches:,} of {done.events:,} events match ({share})"]
    if done.sample:
        lines.append(f"for example {', '.join(done.sample)}")
    if done.rejected:
        lines.append(f"{done.rejected:,} lines could not be read")
    lines += feed_lines(done.feeds)
    if asked.output:
        lines.append(f"the matching events are in {asked.output}")
    tell(fields_of(done), lines, as_json=as_json)


def _try_changes(asked: WhatIf, compiled: Compile, where: Where, *, quiet: bool, as_json: bool) -> None:
    """Try changes and tell what they would do."""
    from headgate.local.small import why_large
    from headgate.tables.requests import check_taxonomy, read_taxonomy

    check_taxonomy(compiled.taxonomy)
    if (asked.snapshot is None) == (asked.subscriptions is None):
        raise click.UsageError("--changes wants one of --snapshot and --subscriptions")
    if asked.page is not None and not asked.page.endswith(".html"):
        raise TableError(f"{asked.page} is not the name of a page: let it end in .html")
    rejected, effects = _beside(asked, "rejected"), _beside(asked, "effects")
    with tempfile.TemporaryDirectory(prefix="headgate-") as folder:
        refused = rejected or str(Path(folder) / "rejected.jsonl")
        if asked.snapshot is not None:
            _check_snapshot(asked.snapshot, compiled)
            asked.request(asked.snapshot).check(asked.output, effects, refused)
        else:
            _check_tables(asked, effects, refused)
        tables = [asked.changes, asked.events, asked.subscriptions]
        large = why_large([table for table in tables if table is not None])
        prepare(where, large)
        from headgate.jobs.what_if import what_if
        from headgate.pipeline.run.reporting import write_what_if

        taxonomy = read_taxonomy(compiled.taxonomy)
        made = asked.snapshot or str(Path(folder) / "snapshot")
        outputs: dict[str, Any] = {"output": asked.output, "effects": effects, "rejected": refused}

        def run(runner: Runner) -> Tried:
            _compile(runner, asked, compiled, taxonomy, folder)
            return what_if(runner, asked.request(made), **outputs)

        done = run_on(where, large, run, quiet=quiet)
        lost = refused if rejected else None
        if asked.page is not None:
            write_what_if(
                done,
                asked.request(made),
                Path(asked.page),
                title=Path(asked.changes).name,
                command=shown_command(sys.argv[1:]),
                rejected=lost,
            )
    lines = _lines(asked, done, effects, lost)
    tell(_fields(done, asked, effects, lost), lines, as_json=as_json)


def _beside(asked: WhatIf, word: str) -> str | None:
    """Name a table after the output, unless it has a name."""
    from headgate.tables.places import beside

    path: str | None = getattr(asked, word)
    return path or (beside(asked.output, word) if asked.output else None)


def _check_snapshot(snapshot: str, compiled: Compile) -> None:
    """Refuse options that a snapshot has answered already, or that its content knows nothing of."""
    from headgate.contents.registry import content_at
    from headgate.core.versions.stores import located

    for option, value in (
        ("--dialect", compiled.dialect),
        ("--taxonomy", compiled.taxonomy),
        ("--coerce and --injective", compiled.options),
        *((each.flag, getattr(compiled, name)) for name, each in PLAIN.items()),
    ):
        if value:
            raise click.UsageError(f"{option} goes with --subscriptions: a snapshot has its own")
    refuse_options(content_at(located(snapshot)))


def _check_tables(asked: WhatIf, effects: str | None, rejected: str) -> None:
    """Refuse tables that are not there, and places that are taken, as far as is known before compiling."""
    from headgate.tables.places import check_apart, check_input, check_output

    outputs = [path for path in (asked.output, effects, rejected) if path is not None]
    for table in (asked.changes, asked.subscriptions or ""):
        check_input(table)
    for path in outputs:
        check_output(path)
    check_apart(asked.changes, asked.subscriptions, asked.events, *outputs)


def _compile(
    runner: Runner, asked: WhatIf, compiled: Compile, taxonomy: Taxonomy | None, folder: str
) -> None:
    """Compile the table that was named, if no snapshot was."""
    if asked.subscriptions is None:
        return
    rejected = str(Path(folder) / "refused.jsonl")
    arguments = {**compiled.arguments(compiled.wanted(taxonomy)), "rejected": rejected}
    from headgate.jobs.compile import compile_subscriptions

    done = compile_subscriptions(runner, asked.subscriptions, str(Path(folder) / "snapshot"), **arguments)
    if done.rejected:
        click.echo(f"note: {done.rejected:,} rows of {asked.subscriptions} were refused", err=True)


def _lines(asked: WhatIf, done: Tried, effects: str | None, rejected: str | None) -> list[str]:
    what = "matches" if asked.top is None else f"places among the best {asked.top:,}"
    told = ", ".join(f"{count:,} {op}" for op, count in done.changes.items()) or "none"
    lines = [f"changes: {told}"]
    lines.append(f"in {done.events:,} events {done.gained:,} {what} would be gained and {done.lost:,} lost")
    if done.deliveries_a_day is not None:
        lines.append(f"that is {done.deliveries_a_day:+,.1f} deliveries a day")
    lines += _effect_lines(done.effects)
    if done.cost is not None:
        lines.append(f"snapshot: {done.cost.bytes_before:,} bytes before, {done.cost.bytes_after:,} after")
        before, after = done.cost.micros_before, done.cost.micros_after
        if before is not None and after is not None:
            lines.append(f"an event takes {before:,.1f} µs before, {after:,.1f} after")
    if done.rejected or done.rejected_events:
        where = (
            f", with the reasons in {rejected}" if rejected else ": name --output or --rejected to see why"
        )
        lines.append(f"refused {done.rejected:,} changes and {done.rejected_events:,} events{where}")
    for name, path in (("what comes and goes", asked.output), ("each subscription", effects)):
        if path is not None:
            lines.append(f"{name} is in {path}")
    if asked.page is not None:
        lines.append(f"report: {asked.page}")
    return lines


def _effect_lines(effects: tuple[Effect, ...]) -> list[str]:
    """List the noisiest subscriptions."""
    if not effects:
        return []
    width = max(len("subscription"), *(len(str(each.id)) for each in effects[:SHOWN]))
    width = min(width, 40)
    lines = [f"{'subscription':<{width}}  {'before':>9}  {'after':>9}  {'gained':>9}  {'lost':>9}  of events"]
    for each in effects[:SHOWN]:
        flag = f"  {each.flag}" if each.flag else ""
        lines.append(
            f"{str(each.id)[:width]:<{width}}  {each.before:>9,}  {each.after:>9,}  {each.gained:>9,}  "
            f"{each.lost:>9,}  {each.share:>8.2%}{flag}"
        )
    if len(effects) > SHOWN:
        lines.append(f"and {len(effects) - SHOWN:,} more")
    return lines


def _fields(done: Tried, asked: WhatIf, effects: str | None, rejected: str | None) -> dict[str, Any]:
    """Return the result for JSON; the effects that are told, the others are in their table."""
    fields: dict[str, Any] = {
        **fields_of(done),
        "effects": None,
        "subscriptions": len(done.effects),
        "silent": sum(each.flag == "matches nothing" for each in done.effects),
        "noisy": sum(each.flag == "noisy" for each in done.effects),
        "noisiest": [vars(each) for each in done.effects[:SHOWN]],
        "deliveries_a_day": done.deliveries_a_day,
        "output": asked.output,
        "effects_table": effects,
        "rejected_table": rejected,
        "report": asked.page,
    }
    return {name: value for name, value in fields.items() if value is not None}
