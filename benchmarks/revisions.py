"""Two revisions of the project, measured in turns: which figures became slower."""

from __future__ import annotations

import json
import os
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

ROOMS = ("records", "graph", "ranking", "rdf", "xml")
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
plan |= {"equality": (20_000, 200_000), "advertising": (0, 0), "checked": 20, "runs": 3}
plan = pipeline.Plan(**plan)
session = pipeline.open_session("local[2]")
with tempfile.TemporaryDirectory() as folder:
    results = pipeline._equality(session, Path(folder), plan)
pipeline.close_session(session)
write_json(results, Path(sys.argv[2]))
"""
"""Compile and match of W-eq on Spark, over as many events as matter."""


class Tree(NamedTuple):
    """A revision, unpacked."""

    name: str
    folder: Path

    def figures(self, area: str) -> dict[str, float]:
        """Run a benchmark of this revision; returns its times by name."""
        file = self.folder / "figures.json"
        self.run(PIPELINE_RUN if area == "pipeline" else ROOM_RUN, area, str(file))
        rows = json.loads(file.read_text("utf-8"))["results"]
        if area == "pipeline":
            rows = [row for row in rows if row["column"].startswith("µs of CPU") and row["name"] == "all"]
        found: dict[str, float] = {}
        for row in rows:
            if row["value"] > 0 and any(part in TIMES for part in row["unit"].split()):
                name = ", ".join(part for part in (row["section"], row["name"], row["column"]) if part)
                # Several figures may have one name: they come in the same order at both revisions.
                again = sum(1 for known in found if known.split(" #")[0] == name)
                found[f"{name} #{again + 1}" if again else name] = row["value"]
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

    def measure(self, trees: tuple[Tree, Tree], rounds: int) -> None:
        """Run both revisions in turns; each goes first in half of the rounds."""
        for number in range(rounds):
            click.echo(f"{self.area}: round {number + 1} of {rounds}", err=True)
            order = list(zip(trees, (self.before, self.after), strict=True))
            for tree, times in order if number % 2 == 0 else reversed(order):
                for name, value in tree.figures(self.area).items():
                    times.setdefault(name, []).append(value)

    def ratios(self, choose: Callable[[list[float]], float]) -> dict[str, float]:
        """Return the later figure by the earlier one, of those that both have, the largest first."""
        found = {
            name: choose(self.after[name]) / choose(values)
            for name, values in self.before.items()
            if name in self.after
        }
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def slower(self) -> list[str]:
        """Name the figures that are slower by more than the limit, by the median and by the least run.

        On a machine that others use, the median of a few runs wanders by a tenth and more; what is slower
        is slower in its best run, too.
        """
        least = self.ratios(min)
        return [name for name, ratio in self.ratios(median).items() if min(ratio, least[name]) > LIMIT]


def report(compared: list[Compared], trees: tuple[Tree, Tree]) -> str:
    """Write the table, and the figures that are slower by more than the limit."""
    heads = ("rounds", "figures", "middle ratio, of medians", "of least", f"over {LIMIT} by both")
    lines = [f"| area | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    slower: list[str] = []
    for each in compared:
        medians, least, above = each.ratios(median), each.ratios(min), each.slower()
        rounds = len(next(iter(each.before.values())))
        middle = f"{median(medians.values()):.3f} | {median(least.values()):.3f}"
        lines.append(f"| {each.area} | {rounds} | {len(medians)} | {middle} | {len(above)} |")
        for name in above:
            before, after = min(each.before[name]), min(each.after[name])
            ratios = f"{medians[name]:.3f} | {least[name]:.3f}"
            slower.append(f"| {each.area}: {name} | {before:.4g} | {after:.4g} | {ratios} |")
    if slower:
        named = f"least at {trees[0].name} | least at {trees[1].name}"
        lines += ["", f"| slower | {named} | ratio of medians | of least |", "|---|---|---|---|---|", *slower]
    return "\n".join(lines)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("before")
@click.argument("after")
@click.option("--area", "areas", multiple=True, help="One of them only; may be given several times.")
@click.option("--rounds", default=5, show_default=True, help="Runs of each revision.")
@click.option("--more", default=10, show_default=True, help="Further runs of an area with a slower figure.")
def main(before: str, after: str, areas: tuple[str, ...], rounds: int, more: int) -> None:
    r"""Compare the small benchmarks of two revisions by CPU time, and matching 200,000 events on Spark.

    \b
    Example:
      python -m benchmarks.revisions 8e2ad5d HEAD
    """
    with tempfile.TemporaryDirectory() as place:
        trees = (unpack(before, Path(place) / "before"), unpack(after, Path(place) / "after"))
        compared = []
        for area in areas or (*ROOMS, "pipeline"):
            each = Compared(area, {}, {})
            each.measure(trees, rounds)
            if each.slower():
                each.measure(trees, more)
            compared.append(each)
            click.echo(report(compared[-1:], trees), err=True)
    click.echo(report(compared, trees))
    click.echo("\nMachine: " + ", ".join(f"{name} {value}" for name, value in machine().items()) + ".")


if __name__ == "__main__":
    main()
