"""What is asked of the job that makes a workload: one class for all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from headgate.core.settings import Request, setting, settings_of
from headgate.workloads.catalogue import (
    EXCHANGE_SELECTIVITIES,
    NAMES,
    RANKING_SCORES,
    RDF_NAMES,
    SOCIAL_SELECTIVITIES,
    XMARK_LAWS,
)

if TYPE_CHECKING:
    from headgate.core.settings import Setting

GRAPHS = ("exchange", "social")
"""Workloads that are graphs: nodes serve subscriptions by themselves, and there is no table of them."""
WORKLOADS = (*NAMES, *GRAPHS, "ranking", *RDF_NAMES, "xmark")
SELECTIVITIES = {"exchange": EXCHANGE_SELECTIVITIES, "social": SOCIAL_SELECTIVITIES}
DEFAULTS: dict[str, dict[str, Any]] = {
    **{name: {"subscriptions": 100_000, "events": 20_000} for name in NAMES},
    "exchange": {"events": 1_000, "selectivity": "1/4"},
    "social": {"events": 1_000, "nodes": 1_000_000, "edges": 10_000_000, "selectivity": "1/16"},
    "ranking": {"subscriptions": 1_000_000, "events": 1_000},
    **{name: {"subscriptions": 30_000, "events": 1_000} for name in RDF_NAMES},
    "xmark": {"subscriptions": 100_000, "events": 200},
}
"""What each workload has if nothing is said."""
_OWN = "as `headgate generate`"
_part = partial(setting, metavar="PART", least=0, most=1)


@dataclass(frozen=True, kw_only=True)
class Generate(Request):
    """Tables that are made up, for demos and tests."""

    workload: str = setting("which [workload](workloads.md)", listed=WORKLOADS)
    subscriptions: int | None = setting("how many subscriptions", least=0, shown=_OWN)
    events: int | None = setting("how many events", least=0, shown=_OWN)
    seed: int = setting("the same seed gives the same rows", 1)
    format: str = setting("of the tables", "jsonl", listed=("jsonl", "parquet"))
    nodes: int | None = setting("how many persons", least=2, only=("social",), shown=_OWN)
    edges: int | None = setting(
        "who follows whom; at least twice the nodes, at most an eighth of all pairs",
        least=4,
        only=("social",),
        shown=_OWN,
    )
    scale: int = setting(
        "times the size of the paper's, 71,097 nodes and 87,799 edges", 1, least=1, most=5, only=("exchange",)
    )
    selectivity: str | None = setting(
        "the part of the filters that an event matches; 1 is no filters",
        listed=tuple(sorted({*EXCHANGE_SELECTIVITIES, *SOCIAL_SELECTIVITIES})),
        only=GRAPHS,
        shown=_OWN,
    )
    vocabulary: int | None = setting(
        "values of each attribute", least=16, most=1_000_000, only=("exchange",), shown="4 to 86"
    )
    dimensions: int | None = setting(
        "intervals of a subscription, one for each of so many attributes",
        metavar="D",
        least=1,
        most=64,
        only=("ranking",),
        shown="1",
    )
    attributes: int | None = setting(
        "instead: attributes of events; a subscription has intervals for 3 to 8 of them",
        least=8,
        only=("ranking",),
    )
    presence: float | None = _part(
        "the part of the attributes that an event has", needs="attributes", only=("ranking",), shown="1"
    )
    skew_length: float = setting(
        "the skew of Zipf's law for lengths; a higher one makes shorter intervals", 0.75, only=("ranking",)
    )
    scores: str = setting(
        "what scores follow: the mean of the weights, which are higher for shorter intervals, or chance",
        "length",
        listed=RANKING_SCORES,
        only=("ranking",),
    )
    match_ratio: float | None = _part(
        "the part of the subscriptions that an event matches", only=("paper",), shown="0.001"
    )
    overlap: float | None = _part("the part of the others that share edges", only=("paper",), shown="0.5")
    constrained: bool = setting("put bounds on variables", False, only=("paper",))
    unique: int | None = setting(
        "how many subscriptions are different; the others repeat them",
        least=1,
        only=("xmark",),
        shown="all of them",
    )
    law: str = setting(
        "how subscriptions are drawn: as those of [Table 2 of the paper](workloads.md#xmark), or so that the "
        "publisher need feed few of them, as in its network of 300 machines",
        "table-2",
        listed=XMARK_LAWS,
        only=("xmark",),
    )
    kilobytes: tuple[int, int] = setting(
        "the size of a document, at least and at most", (10, 40), least=1, most=10_000, only=("xmark",)
    )

    def value(self, name: str) -> Any:
        """Return a setting, or what the workload has if nothing is said."""
        said = getattr(self, name)
        return DEFAULTS[self.workload].get(name, 0) if said is None else said


def settings_of_workloads(names: tuple[str, ...]) -> tuple[Setting, ...]:
    """List the settings that mean something for some workloads, with their own defaults."""
    settings = []
    own = DEFAULTS[names[0]]
    for each in settings_of(Generate):
        made = each
        if each.only and not set(each.only) & set(names):
            continue
        if (each.name == "subscriptions" and names[0] in GRAPHS) or (
            each.name == "workload" and len(names) == 1
        ):
            continue
        if each.name == "workload":
            made = replace(each, default=names[0], listed=names, required=False)
        elif each.name in own:
            made = replace(
                each, shown=f"{own[each.name]:,}" if isinstance(own[each.name], int) else own[each.name]
            )
        if each.name == "selectivity":
            made = replace(made, listed=SELECTIVITIES[names[0]])
        if each.only and set(names) > set(each.only):
            made = replace(made, help=f"`{each.only[0]}`: {each.help}")
        settings.append(made)
    return tuple(settings)
