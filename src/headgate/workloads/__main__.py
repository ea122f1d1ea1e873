"""Print statistics of the workloads: python -m headgate.workloads --help."""

from __future__ import annotations

from argparse import ArgumentParser

from headgate.workloads.catalogue import SYNTHETIC, synthetic
from headgate.workloads.statistics import measure


def main() -> None:
    """Measure the workloads that are named, and print a table of them."""
    parser = ArgumentParser(prog="python -m headgate.workloads", description="Statistics of workloads.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"from {', '.join(SYNTHETIC)}; all")
    parser.add_argument("--subscriptions", type=int, default=100_000, help="100,000 by default")
    parser.add_argument("--events", type=int, default=200, help="200 by default")
    parser.add_argument("--seed", type=int, default=1, help="1 by default")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.names if name not in SYNTHETIC]
    if unknown:
        parser.error(f"no workload is named {unknown[0]}; there are {', '.join(SYNTHETIC)}")
    if chosen.subscriptions < 1 or chosen.events < 1:
        parser.error("there must be a subscription and an event at least")
    names = chosen.names or list(SYNTHETIC)
    columns = [
        measure(synthetic(name, chosen.subscriptions), chosen.subscriptions, chosen.events, chosen.seed)
        for name in names
    ]
    print(f"{'':30}" + "".join(f"{name:>12}" for name in names))
    for label in columns[0]:
        print(f"{label:30}" + "".join(f"{_short(column[label]):>12}" for column in columns))


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


if __name__ == "__main__":
    main()
