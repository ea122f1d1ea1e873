"""Two revisions of the project, measured in turns: which figures became slower.

Slower is what is slower by more than the limit in the median and in the least run: on a machine that others
use, the median of a few runs wanders by a tenth and more. Headline figures decide: those with a goal on the
page of their area, and those of the README, at the small size of the benchmark.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import click

from benchmarks.kernels import COMMAND, TIMES
from benchmarks.results import machine

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
ROOMS = ("records", "graph", "ranking", "rdf", "xml", "engine", "service", "plan")
LIMIT = 1.05
ROOM_RUN = """
import sys, time
time.perf_counter = time.process_time
from benchmarks.__main__ import main
main([sys.argv[1], "--json", sys.argv[2]])
"""
"""The small benchmark of a room, by CPU time."""
PIPELINE_RUN = """
import sys, tempfile
from pathlib import Path
from benchmarks import pipeline
from benchmarks.results import write_json
plan = dict.fromkeys(pipeline.Plan._fields, 0)
plan |= {"equality": (20_000, 200_000), "advertising": (0, 0), "plain": 500, "checked": 20, "runs": 3}
plan = pipeline.Plan(**plan)
session = pipeline.open_session("local[2]")
with tempfile.TemporaryDirectory() as folder:
    results = pipeline._equality(session, Path(folder), plan)
pipeline.close_session(session)
write_json(results, Path(sys.argv[2]))
"""
"""Compile and match of W-eq on Spark, over as many events as matter."""


def headlines(area: str) -> frozenset[str]:
    """Name the figures of an area that decide, without their sizes, which a small benchmark has not.

    >>> "W-mix, # filters" in headlines("records"), "# patterns: from text to ids" in headlines("xml")
    (True, False)
    """
    page = (ROOT / "docs" / "benchmarks" / f"{area}.md").read_text("utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    listed = re.findall(rf"\[([\d.,]+)\]\(docs/benchmarks/{area}\.md\)", README.read_text("utf-8"))
    return frozenset(
        sizeless(row[0])
        for row in rows
        if len(row) > 1 and (re.match("at (most|least) ", row[-1]) or row[1].split(" ")[0] in listed)
    )


def sizeless(name: str) -> str:
    """Leave the numbers out of the name of a figure.

    >>> sizeless("W-mix, 1,000,000 filters: built")
    'W-mix, # filters: built'
    """
    return re.sub(r"\d+(?:[.,]\d+)*", "#", name)


class Figure(NamedTuple):
    """A time, and whether it decides."""

    value: float
    headline: bool


class Tree(NamedTuple):
    """A revision, unpacked."""

    name: str
    folder: Path

    def figures(self, area: str) -> dict[str, Figure]:
        """Run a benchmark of this revision; returns its times by name."""
        file = self.folder / "figures.json"
        self.run(PIPELINE_RUN if area == "pipeline" else ROOM_RUN, area, str(file))
        rows = json.loads(file.read_text("utf-8"))["results"]
        if area == "pipeline":
            rows = [row for row in rows if row["column"].startswith("µs of CPU") and row["name"] == "all"]
        # All that is left of that of the pipeline stands in the README.
        wanted = None if area == "pipeline" else headlines(area)
        found: dict[str, Figure] = {}
        for row in rows:
            if row["value"] > 0 and any(part in TIMES for part in row["unit"].split()):
                name = ", ".join(part for part in (row["section"], row["name"], row["column"]) if part)
                # Several figures may have one name: they come in the same order at both revisions.
                again = sum(1 for known in found if known.split(" #")[0] == name)
                decides = wanted is None or sizeless(row["name"]) in wanted
                found[f"{name} #{again + 1}" if again else name] = Figure(row["value"], decides)
        return found

    def run(self, code: str, *arguments: str) -> None:
        """Run code with this revision's packages."""
        places = os.pathsep.join(str(self.folder / part) for part in ("src", "."))
        # As for a package that was installed, Python keeps modules in its own form.
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=self.folder,
            env={**kept, "PYTHONPATH": places},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise click.ClickException(f"{' '.join(arguments)} at {self.name} failed:\n{done.stderr}")


def unpack(revision: str, folder: Path) -> Tree:
    """Write the files of a revision into a new folder, and compile its kernels."""
    folder.mkdir()
    packed = subprocess.run(["git", "archive", revision], stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=True)
    tree = Tree(revision, folder)
    tree.run(COMMAND, "warm", "--quiet")
    return tree


class Compared(NamedTuple):
    """The times of an area at two revisions, a list of runs for each figure."""

    area: str
    before: dict[str, list[float]]
    after: dict[str, list[float]]
    headline: set[str]

    def measure(self, trees: tuple[Tree, Tree], rounds: int) -> None:
        """Run both revisions in turns; each goes first in half of the rounds."""
        for number in range(rounds):
            click.echo(f"{self.area}: round {number + 1} of {rounds}", err=True)
            order = list(zip(trees, (self.before, self.after), strict=True))
            for tree, times in order if number % 2 == 0 else reversed(order):
                for name, figure in tree.figures(self.area).items():
                    times.setdefault(name, []).append(figure.value)
                    if figure.headline:
                        self.headline.add(name)

    def ratios(self, choose: Callable[[list[float]], float]) -> dict[str, float]:
        """Return the later figure by the earlier one, of those that both have, the largest first."""
        found = {
            name: choose(self.after[name]) / choose(values)
            for name, values in self.before.items()
            if name in self.after
        }
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def slower(self) -> list[str]:
        """Name the headline figures that are slower by more than the limit."""
        return [name for name in self.above() if name in self.headline]

    def above(self) -> list[str]:
        """Name all figures that are, by the median and by the least run."""
        least = self.ratios(min)
        return [name for name, ratio in self.ratios(median).items() if min(ratio, least[name]) > LIMIT]

    def skipped(self) -> list[str]:
        """Name the figures that one revision has alone."""
        return sorted(self.before.keys() ^ self.after.keys())


def report(compared: list[Compared], trees: tuple[Tree, Tree]) -> str:
    """Write the table, and the figures that are slower by more than the limit."""
    heads = (
        "rounds", "figures", "middle ratio, of medians", "of least", f"over {LIMIT} by both",
        "headline figures", "slower",
    )  # fmt: skip
    lines = [f"| area | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    slower: list[str] = []
    for each in compared:
        medians, least, decided = each.ratios(median), each.ratios(min), each.slower()
        rounds = len(next(iter(each.before.values())))
        middle = f"{median(medians.values()):.3f} | {median(least.values()):.3f}"
        headline = len(each.headline & medians.keys())
        counted = f"{len(medians)} | {middle} | {len(each.above())} | {headline} | {len(decided)}"
        lines.append(f"| {each.area} | {rounds} | {counted} |")
        for name in decided:
            before, after = min(each.before[name]), min(each.after[name])
            ratios = f"{medians[name]:.3f} | {least[name]:.3f}"
            slower.append(f"| {each.area}: {name} | {before:.4g} | {after:.4g} | {ratios} |")
    lines += [
        f"\nSkipped, {each.area}: at one revision only: {name}."
        for each in compared
        for name in each.skipped()
    ]
    if slower:
        named = f"least at {trees[0].name} | least at {trees[1].name}"
        lines += ["", f"| slower | {named} | ratio of medians | of least |", "|---|---|---|---|---|", *slower]
    return "\n".join(lines)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("before")
@click.argument("after")
@click.option("--area", "areas", multiple=True, help="One of them only; may be given several times.")
@click.option("--rounds", default=5, show_default=True, help="Runs of each revision.")
@click.option("--more", default=10, show_default=True, help="Further runs of an area that is slower.")
def main(before: str, after: str, areas: tuple[str, ...], rounds: int, more: int) -> None:
    r"""Compare the small benchmarks of two revisions by CPU time, and matching 200,000 events on Spark.

    Ends with 1 if a headline figure is slower.

    \b
    Example:
      python -m benchmarks.revisions 8e2ad5d HEAD
    """
    with tempfile.TemporaryDirectory() as place:
        trees = (unpack(before, Path(place) / "before"), unpack(after, Path(place) / "after"))
        compared = []
        for area in areas or (*ROOMS, "pipeline"):
            each = Compared(area, {}, {}, set())
            each.measure(trees, rounds)
            if each.slower():
                each.measure(trees, more)
            compared.append(each)
            click.echo(report(compared[-1:], trees), err=True)
    click.echo(report(compared, trees))
    click.echo("\nMachine: " + ", ".join(f"{name} {value}" for name, value in machine().items()) + ".")
    if any(each.slower() for each in compared):
        sys.exit(1)


if __name__ == "__main__":
    main()
