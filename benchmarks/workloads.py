"""Print statistics of the workloads: python -m benchmarks.workloads --help."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING

from benchmarks.workload_statistics import measure
from headgate.workloads.catalogue import SYNTHETIC, synthetic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.workloads.rdf.publications import RdfWorkload

_EXCHANGE, _RANKING, _RDF, _XMARK = "exchange", "ranking", "rdf", "xmark"


def main() -> None:
    """Measure the workloads that are named, and print a table of them."""
    parser = ArgumentParser(prog="python -m benchmarks.workloads", description="Statistics of workloads.")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"from {', '.join(SYNTHETIC)}, which are all; "
        f"or {_EXCHANGE} or {_XMARK}, beside their papers, {_RANKING}, or {_RDF}",
    )
    parser.add_argument("--subscriptions", type=int, default=100_000, help="100,000 by default")
    parser.add_argument("--events", type=int, default=200, help="200 by default")
    parser.add_argument("--seed", type=int, default=1, help="1 by default")
    chosen = parser.parse_args()
    names = chosen.names or list(SYNTHETIC)
    others = (_EXCHANGE, _RANKING, _RDF, _XMARK)
    unknown = [name for name in names if name not in {*SYNTHETIC, *others}]
    if unknown:
        known = ", ".join((*SYNTHETIC, *others))
        parser.error(f"no workload is named {unknown[0]}; there are {known}")
    if chosen.subscriptions < 1 or chosen.events < 1:
        parser.error("there must be a subscription and an event at least")
    specified = [name for name in names if name not in others]
    if specified:
        columns = {
            name: measure(
                synthetic(name, chosen.subscriptions), chosen.subscriptions, chosen.events, chosen.seed
            )
            for name in specified
        }
        _print(columns, 30)
    if _EXCHANGE in names:
        _print_exchange(chosen.events, chosen.seed)
    if _RANKING in names:
        _print_ranking(chosen.subscriptions, chosen.events, chosen.seed)
    if _RDF in names:
        _print_rdf(chosen.subscriptions, chosen.events, chosen.seed)
    if _XMARK in names:
        _print_xmark(chosen.subscriptions, chosen.events, chosen.seed)


def _print_exchange(events: int, seed: int) -> None:
    from benchmarks.workload_statistics import (
        PAPER_SCALES,
        PAPER_SELECTIVITIES,
        PAPER_SHAPE,
        measure_reach,
        measure_shape,
    )
    from headgate.workloads.graphs.exchange import Exchange

    _print({"paper": PAPER_SHAPE, "here": measure_shape(Exchange(), seed)}, 30)
    tables = {
        "selectivity": {name: (Exchange(1, name), paper) for name, paper in PAPER_SELECTIVITIES.items()},
        "size, at 1/4": {f"x {scale}": (Exchange(scale), paper) for scale, paper in PAPER_SCALES.items()},
    }
    for title, table in tables.items():
        print(f"\n{title}: paper, here")
        columns = {}
        for name, (exchange, paper) in table.items():
            columns[name] = paper._asdict()
            columns[f"{name} "] = measure_reach(exchange, events, seed)._asdict()
        _print(columns, 8, 8)


def _print_ranking(boxes: int, events: int, seed: int) -> None:
    from benchmarks.workload_statistics import measure_boxes
    from headgate.workloads.ranking import Ranking, RankingWorkload, Sparse

    chosen: dict[str, RankingWorkload] = {f"d = {d}": Ranking(d) for d in (1, 2, 4, 8)}
    chosen |= {"500": Sparse(), "500, a fifth": Sparse(presence=0.2)}
    _print({name: measure_boxes(each, boxes, events, seed) for name, each in chosen.items()}, 36, 14)


def _print_rdf(filters: int, events: int, seed: int) -> None:
    from benchmarks.workload_statistics import measure_rdf
    from headgate.workloads.rdf.stars import Stars
    from headgate.workloads.rdf.triples import Paper

    chosen: dict[str, RdfWorkload] = {
        "paper": Paper(),
        "constrained": Paper(constrained=True),
        "large": Paper(subscription=(20, 35)),
        "stars": Stars(),
    }
    _print({name: measure_rdf(each, filters, events, seed) for name, each in chosen.items()}, 34)


def _print_xmark(views: int, events: int, seed: int) -> None:
    from benchmarks.workload_statistics import PAPER_VIEWS, measure_xml
    from headgate.workloads.xml.xmark import WAN, XMark

    some = max(1, views * 3 // 10)
    measured = {
        "unique": measure_xml(XMark(), views, events, seed),
        "3 of 10": measure_xml(XMark(unique=some), views, events, seed),
        "wan": measure_xml(XMark(unique=some, law=WAN), views, events, seed),
    }
    _print({"paper": PAPER_VIEWS, **measured}, 34)
    print()
    _print(measured, 34)


def _print(columns: Mapping[str, Mapping[str, float]], label: int, width: int = 12) -> None:
    """Print a table: a column for each name, a row for each label that the first column has."""
    print(" " * label + "".join(f"{name.strip():>{width}}" for name in columns))
    for row in next(iter(columns.values())):
        print(f"{row:{label}}" + "".join(f"{_short(column[row]):>{width}}" for column in columns.values()))


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


if __name__ == "__main__":
    main()
