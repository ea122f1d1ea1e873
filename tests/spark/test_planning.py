"""The plan job: estimates, sites and networks are those of the library, and what is refused is told."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from headgate import Event, SavedPlan, Settings, Subscription
from headgate.engine.views import views_of
from headgate.errors import PlanError, TableError
from headgate.jobs import plan
from headgate.jobs.plan import estimate, rows_of
from headgate.local.runner import LocalTable
from headgate.plan.costs import averages, sums
from headgate.plan.graphs.rewritability import Search
from headgate.plan.running import planner
from headgate.plan.running.validate import problems
from headgate.records.index.index import RecordIndex
from headgate.tables.sites import LINK_ENDS, Bounds, read_links, read_sites
from headgate.xml.index.index import XmlIndex
from headgate.xml.language.printing import print_pattern
from tests.spark.files import get_lines, put_lines
from tests.spark.jobs import on_both, plan_subscriptions, runner_of
from tests.xml.random_patterns import random_document
from tests.xml.random_views import view_set

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SETTINGS = Settings(search=Search(k=10), fan_out=4.0, gap=0.0)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Subscription], list[Event]]:
    """Save views over XML, and a sample of documents with one that is none."""
    folder = tmp_path_factory.mktemp("planning")
    rng = random.Random(5)
    subscriptions = [
        Subscription(f"v{number:02}", print_pattern(pattern), "xpath")
        for number, pattern in enumerate(view_set(rng, 60))
    ]
    XmlIndex.build(subscriptions).save(folder / "xml")
    events = [Event(number, random_document(rng), content_type="xml") for number in range(12)]
    rows = [{"id": event.id, "data": event.data, "datacontenttype": "xml"} for event in events]
    put_lines(folder / "sample.jsonl", [*rows, {"id": 99, "data": "<a>", "datacontenttype": "xml"}])
    return folder, subscriptions, events


def test_estimates_are_those_of_the_library(
    session: SparkSession | None, made: tuple[Path, list[Subscription], list[Event]]
) -> None:
    folder, subscriptions, events = made
    rejected = folder / "refused.jsonl"
    sample = str(folder / "sample.jsonl")
    found = estimate(runner_of(session), str(folder / "xml"), sample, rejected=str(rejected))
    views = views_of(subscriptions)
    index = XmlIndex.build(
        Subscription(number, each.filter, each.dialect) for number, each in enumerate(subscriptions)
    )
    wanted = averages(*sums(views, lambda event: index.numbers(event).tolist(), events))
    assert np.array_equal(found.rows, wanted.rows)
    assert np.array_equal(found.bytes, wanted.bytes)
    assert (found.events, found.rejected, found.unseen) == (12, 1, wanted.unseen)
    (row,) = get_lines(rejected)
    assert "not valid XML" in row["reason"]


@on_both("by_workers", [False, True], 1)
def test_a_network_from_tables(
    session: SparkSession | None,
    made: tuple[Path, list[Subscription], list[Event]],
    by_workers: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As of very many views.
    monkeypatch.setattr(plan, "HELD", 0)
    monkeypatch.setattr(planner, "HELD", 0)
    folder, subscriptions, _ = made
    done, found = plan_subscriptions(
        session,
        str(folder / "xml"),
        str(folder / "sample.jsonl"),
        str(folder / f"network-{by_workers}"),
        SETTINGS,
        rejected=str(folder / "refused.jsonl"),
        by_workers=by_workers,
        quiet=True,
    )
    network = SavedPlan.open(folder / f"network-{by_workers}")
    assert not problems(network.plan, network.rewritings, network.costs, network.capacities)
    assert not problems(network.before, network.rewritings, network.costs, network.capacities)
    assert list(network.ids) == [each.id for each in subscriptions]
    assert done.views == 60
    assert done.source_fed == int((network.plan.chosen == -1).sum()) < 60
    assert done.latency <= done.latency_before
    assert done.gap <= 1e-6
    assert network.about["sample"] == {"table": "sample.jsonl", "events": 12}
    manifest = json.loads((folder / f"network-{by_workers}" / "manifest.json").read_text())
    assert set(manifest["tables"]) == {"views.parquet", "feeds.parquet"}
    # Workers find what this machine finds.
    again, _ = plan_subscriptions(
        session,
        str(folder / "xml"),
        str(folder / "sample.jsonl"),
        str(folder / "again"),
        SETTINGS,
        rejected=str(folder / "refused.jsonl"),
        by_workers=not by_workers,
        quiet=True,
    )
    assert (again.embeddings, again.rewritings, again.utilization) == (
        done.embeddings,
        done.rewritings,
        done.utilization,
    )
    assert found.saved.about["graphs"]["edges"] == done.embeddings > 100


def test_records_and_sites(session: SparkSession | None, tmp_path: Path) -> None:
    rng = random.Random(6)
    clauses = ["a = 1", "b > 3", "c = 'x'", "d LIKE 'n%'"]
    subscriptions = [
        Subscription(number, " AND ".join(rng.sample(clauses, rng.randint(1, 4)))) for number in range(20)
    ]
    RecordIndex.build(subscriptions).save(tmp_path / "records")
    sample = put_lines(
        tmp_path / "sample.jsonl",
        [*({"id": n, "a": 1, "b": n, "c": "x", "d": "news"} for n in range(8)), {"b": 3}],
    )
    sites = put_lines(
        tmp_path / "sites.jsonl",
        [
            {"id": 0, "site": "hub", "fan_out": 2},
            {"id": "1", "site": "hub"},
            {"id": 2, "cpu": 0, "weight": 3},
        ],
    )
    links = tmp_path / "links.csv"
    links.write_text("from,to,delay,speed\nhub,2,4,\nsource,hub,7.5,20\n")
    done, found = plan_subscriptions(
        session,
        str(tmp_path / "records"),
        sample,
        str(tmp_path / "network"),
        Settings(fan_out=5.0, gap=0.0),
        rejected=str(tmp_path / "refused.jsonl"),
        sites=sites,
        links=str(links),
        carries="key",
        quiet=True,
    )
    network = found.saved
    assert done.rejected == 1
    assert [network.sites.text(int(site)) for site in network.capacities.sites[:4]] == [
        "hub",
        "hub",
        "2",
        "3",
    ]
    assert network.capacities.fan_out[:3].tolist() == [2.0, 5.0, 5.0]
    assert network.capacities.cpu[1] == 0.0
    assert network.weights is not None
    assert network.weights[:3].tolist() == [1.0, 3.0, 1.0]
    assert network.links is not None
    assert network.links.origins.tolist() == [0, -1]
    assert network.links.targets.tolist() == [1, 0]
    assert network.costs.source_latency[:2] == pytest.approx(7.5 + network.costs.source_sent[:2] / 20)
    again = SavedPlan.open(tmp_path / "network")
    assert np.array_equal(again.links.delays, network.links.delays)  # type: ignore[union-attr]
    assert np.array_equal(again.weights, network.weights)  # type: ignore[arg-type]
    assert not problems(network.plan, network.rewritings, network.costs, network.capacities)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"site": "x"}, "the row has no id"),
        ({"id": "s9"}, "there is no subscription 's9' in the snapshot"),
        ({"id": "s1", "fan_out": -1}, "fan_out is -1: give a number that is 0 or more"),
        ({"id": "s1", "cpu": "much"}, "cpu is 'much'"),
        ({"id": "s1", "cpu": [1]}, "cpu is [1]"),
        ({"id": "s1", "site": ["x"]}, "site is ['x']: give its name"),
        ({"id": "s0"}, "subscription 's0' has a row already"),
        ({"id": "s1", "site": "hub", "fan_out": 3}, "site 'hub' has fan_out 3 here and 2 before"),
        ({"id": "s1", "weight": "inf"}, "the weight of a site is infinite: give a number that is not"),
    ],
)
def test_a_bad_site_is_refused(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    ids = RecordIndex.build([Subscription(f"s{number}", "a = 1") for number in range(3)]).ids
    table = put_lines(tmp_path / "sites.jsonl", [{"id": "s0", "site": "hub", "fan_out": 2}, row])
    with pytest.raises(TableError) as refused:
        read_sites(rows_of(LocalTable(table)), table, ids, Bounds())
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"to": "b"}, "the row has no site in 'from': a link leads from one site to another"),
        ({"from": "a", "to": "c"}, "there is no site 'c': links are between sites of the plan"),
        ({"from": "a", "to": "b", "delay": -1}, "the delay from 'a' to 'b' is -1.0: it is 0 or more"),
        ({"from": "a", "to": "b", "speed": "much"}, "speed 'much' is not usable: give a number"),
        ({"from": "source", "to": "a"}, "the link from 'source' to 'a' is given twice: give it once"),
    ],
)
def test_a_bad_link_is_refused(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    table = put_lines(tmp_path / "links.jsonl", [{"from": "source", "to": "a", "speed": 3}, row])
    with pytest.raises(TableError) as refused:
        read_links(rows_of(LocalTable(table), *LINK_ENDS), table, ["a", "b"])
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_site_of_ones_own_is_no_site_of_that_name(tmp_path: Path) -> None:
    ids = RecordIndex.build([Subscription(f"s{number}", "a = 1") for number in range(3)]).ids
    table = put_lines(
        tmp_path / "sites.jsonl", [{"id": "s0", "site": "s1", "fan_out": 2}, {"id": "s2", "cpu": 1}]
    )
    found = read_sites(rows_of(LocalTable(table)), table, ids, Bounds(fan_out=7.0))
    assert found.capacities.sites.tolist() == [0, 1, 2]
    assert found.capacities.fan_out.tolist() == [2.0, 7.0, 7.0]
    assert found.capacities.cpu.tolist() == [np.inf, np.inf, 1.0]


def test_capacities_that_cannot_be_kept(
    session: SparkSession | None, made: tuple[Path, list[Subscription], list[Event]]
) -> None:
    folder, _, _ = made
    with pytest.raises(PlanError, match="source"):
        plan_subscriptions(
            session,
            str(folder / "xml"),
            str(folder / "sample.jsonl"),
            str(folder / "none"),
            Settings(source_fan_out=0.0),
            rejected=str(folder / "refused.jsonl"),
            quiet=True,
        )
    assert not (folder / "none").exists()
    RecordIndex.build([Subscription("s", "TRUE")]).save(folder / "records")
    with pytest.raises(TableError, match="leave out --format"):
        plan_subscriptions(
            session,
            str(folder / "records"),
            str(folder / "sample.jsonl"),
            str(folder / "none"),
            SETTINGS,
            rejected=str(folder / "refused.jsonl"),
            content_type="xml",
            quiet=True,
        )
