"""Run a benchmark and print its table."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.results import Result, as_table, write_json, write_markdown

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL_TABLES = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
AREAS = (
    "records",
    "engine",
    "pipeline",
    "template",
    "many",
    "stream",
    "parsing",
    "languages_importers",
    "text_search",
    "languages",
    "graph",
    "ranking",
    "rdf",
    "xml",
    "plan",
    "plan_wan",
    "plan_utilization",
    "kernels",
    "local",
    "statistics",
    "answers",
    "service",
    "network",
)
PARTS = ("network_simulated",)
"""What another area runs too, for pages of their own."""
ON_SPARK = ("pipeline", "template", "many", "stream")
SETS: dict[str, tuple[str, ...]] = {
    "all": AREAS,
    "in-process": tuple(name for name in AREAS if name not in ON_SPARK),
}
"""Several areas in one process: all of them, or those that start no Spark."""


@contextmanager
def _one_spark() -> Iterator[None]:
    """Hold one session for all areas, set for small tables."""
    from headgate.spark.session.session import close_session, open_session
    from tests.spark.classes import java_options

    for name, options in java_options().items():
        os.environ.setdefault(name, options)
    session = open_session("local[2]", settings=SMALL_TABLES)
    try:
        yield
    finally:
        close_session(session)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("area", type=click.Choice([*AREAS, *PARTS, *SETS]))
@click.option("--size", default="quick", show_default=True, type=click.Choice(["quick", "full"]))
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Also write JSON.")
@click.option(
    "--markdown", "page", type=click.Path(path_type=Path, dir_okay=False), help="Also write a page."
)
def main(area: str, size: str, json_file: Path | None, page: Path | None) -> None:
    r"""Measure an area, or several in one process: all, or those that start no Spark (in-process).

    `quick` takes seconds and checks that answers agree; `full` prints the figures.

    \b
    Example:
      python -m benchmarks records --size full --markdown docs/benchmarks/records.md
    """
    if area in SETS and (json_file or page):
        raise click.UsageError("--json and --markdown take one area")
    results: list[Result] = []
    with _one_spark() if (area, size) == ("all", "quick") else nullcontext():
        for each in SETS.get(area, (area,)):
            began = time.monotonic()
            results = import_module(f"benchmarks.{each}").run(size)
            click.echo(as_table(results))
            click.echo(f"{each}: {time.monotonic() - began:.0f} s\n")
    if json_file is not None:
        write_json(results, json_file)
    if page is not None:
        write_markdown(area, size, results, page)


if __name__ == "__main__":
    main()
