"""What is asked of the job that plans; this module loads nothing large."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.contents.settings import REFUSED, Documents
from headgate.core.settings import Input, Output, Seconds, setting


@dataclass(frozen=True, kw_only=True)
class Plan(Documents):
    """Plan how events travel: subscribers that feed each other."""

    snapshot: Input = setting(
        "the subscriptions, compiled in one piece, without a graph",
        key="compile.snapshot",
        metavar="DIRECTORY",
    )
    sample: Input = setting("a table of events like those to come, or documents, to estimate sizes")
    output: Output = setting(
        "a directory for the network", metavar="DIRECTORY", more="An older one there is replaced."
    )
    rejected: Output | None = setting("a table for rows of the sample that are not events", shown=REFUSED)
    page: Output | None = setting(
        "draw it: a page (`.html`), or the picture alone (`.svg`, `.png`)", option="--report", metavar="FILE"
    )
    sites: Input | None = setting(
        "a table of sites, and their capacities: `id` of a subscription; `site`, `fan_out`, `bandwidth`, "
        "`cpu`, `weight` where they are its own",
        more="Without a row a subscription has a site of its own.",
    )
    links: Input | None = setting(
        "a table of links between sites: `from`, `to`; `delay` in milliseconds and `speed` in bytes a "
        "millisecond where they are its own",
        more="The publisher is called `source`.",
    )
    fan_out: float | None = setting("views that a site feeds at most", metavar="N", least=0, shown="no bound")
    bandwidth: float | None = setting(
        "bytes that a site can send for an event", metavar="BYTES", least=0, shown="no bound"
    )
    cpu: float | None = setting(
        "what a site can work for an event", metavar="WORK", least=0, shown="no bound"
    )
    source_fan_out: float | None = setting(
        "views that the publisher feeds at most",
        metavar="N",
        least=0,
        shown="those that it must, and a fifth more",
    )
    source_bandwidth: float | None = setting(
        "bytes that the publisher can send", metavar="BYTES", least=0, shown="no bound"
    )
    source_cpu: float | None = setting(
        "what the publisher can work", metavar="WORK", least=0, shown="no bound"
    )
    rewritings: int = setting("ways to compute a view that are looked for", 30, metavar="K", least=1)
    alpha: float = setting("what utilization weighs when latency is lowered", 0.0, least=0)
    beta: float = setting("what latency weighs then", 1.0, least=0)
    relax: float = setting(
        "by how much the sites' capacities may be passed to lower latency", 1.0, metavar="FACTOR", least=1
    )
    swaps: bool = setting("move views aside to make room for others", True)
    to_source: bool = setting("move views to the publisher where latency falls and it may feed more", False)
    time_limit: Seconds = setting(
        "for the integer program",
        300.0,
        least=0,
        more="At the limit the best plan found is taken, and the command says so.",
    )
    gap: float = setting("how far from the optimum of utilization is good enough", 0.01, least=0)
    carries: str | None = setting(
        "records: what subscribers hold of an event that they get: all of it, or that they got it",
        listed=("row", "key"),
        shown="`row`",
    )

    @property
    def arguments(self) -> dict[str, Any]:
        """Return what the job takes besides what bounds the network."""
        names = ("snapshot", "sample", "output", "rejected", "sites", "links", "carries")
        return {**{name: getattr(self, name) for name in names}, "content_type": self.format}

    @property
    def bounds(self) -> dict[str, Any]:
        """Return what bounds the network, as `headgate.plan.running.planner.Settings` names it."""
        others = {*self.arguments, "page", "format", "rewritings"}
        return {name: value for name, value in vars(self).items() if name not in others}
