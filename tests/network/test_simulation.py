"""The simulator of networks: the fast one against the slow one, and what can be told by hand."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from benchmarks.network_calibration import (
    Observed,
    calibrate,
    error,
    hops_of,
    layout_of_placed,
    one_place,
    predicted,
    slowed_to,
)
from headgate import Dissemination, Event, Settings, Subscription
from headgate.errors import NetworkError, TableError
from headgate.network.assignment import SOURCE as BY_NAME
from headgate.network.simulation import fast
from headgate.network.simulation.figures import figures_of, simulate_plan
from headgate.network.simulation.model import (
    NOTHING,
    Costs,
    Links,
    Machines,
    Scene,
    Traffic,
    cities_of,
    layout_of,
    levels_of,
    nine_cities,
    read_links,
    spread,
    with_joins,
)
from headgate.network.site import TOGETHER
from headgate.report.deliveries import Delivered, write_charts
from tests.network import simulated as reference
from tests.network.worlds import world_of
from tests.seeds import seeds

if TYPE_CHECKING:
    from pathlib import Path

FREE = Costs(**dict.fromkeys(Costs._fields, 0.0))


def scene_of(rng: random.Random) -> Scene:
    """Draw a scene: few numbers, so that much happens at the same time."""
    views, stations, documents = rng.randint(1, 14), rng.randint(2, 6), rng.randint(1, 8)
    inputs: list[list[int]] = []
    for view in range(views):
        before = rng.sample(range(view), rng.randint(0, min(view, 3)))
        inputs.append(sorted(before))
    offsets = np.cumsum([0, *map(len, inputs)])
    layout = layout_of(
        [rng.randrange(1, stations) for _ in range(views)],
        offsets,
        [each for some in inputs for each in some],
        stations,
    )
    kinds, cities = rng.randint(1, 3), rng.randint(1, 3)
    sizes = np.array(
        [[rng.choice((0, 10, 20, 1000)) for _ in range(views)] for _ in range(kinds)], np.float32
    )
    for kind in range(kinds):
        for view in range(views):
            if any(sizes[kind, each] < 0 for each in inputs[view]) or rng.random() < 0.15:
                sizes[kind, view] = NOTHING
    costs = Costs(**{field: rng.choice((0.0, 1.0, 2.0, 0.1)) for field in Costs._fields})
    links = Links(
        tuple(f"c{number}" for number in range(cities)),
        np.array([[rng.choice((1.0, 0.5, 2.0)) for _ in range(cities)] for _ in range(cities)]),
        np.array([[rng.choice((10.0, 1000.0)) for _ in range(cities)] for _ in range(cities)]),
    )
    shared = rng.random() < 0.5
    machines = Machines(
        np.array([rng.randrange(cities) for _ in range(stations)]),
        np.array([rng.randrange(2) for _ in range(stations)]) if shared else np.arange(stations),
        np.array([rng.randint(1, 2) for _ in range(2 if shared else stations)]),
    )
    traffic = Traffic.of(
        sizes,
        np.array([float(rng.randint(0, 50)) for _ in range(kinds)]),
        documents,
        rng.choice((0.0, 3.0, 50.0)),
    )
    return Scene(layout, machines, links, traffic, costs, rng.choice((1, 2, 256)), rng.choice((1, 3, 100)))


@pytest.mark.jit_off
@pytest.mark.parametrize("seed", seeds(320))
def test_fast_is_as_slow(seed: int) -> None:
    """Every time of every document and view is the same, to the last bit; sums are those of the times."""
    scene = scene_of(random.Random(seed))
    slow, quick = reference.simulate(scene), fast.simulate(scene)
    for name, expected, found in zip(slow._fields, slow, quick, strict=True):
        np.testing.assert_array_equal(expected, found, err_msg=name)
    given = scene.traffic.result_bytes[scene.traffic.kind] >= 0
    np.testing.assert_array_equal(~np.isnan(slow.there), given)
    sums = fast.totals(scene).sums
    latency = slow.latency
    np.testing.assert_array_equal(sums.view_count, given.sum(axis=0))
    np.testing.assert_array_equal(sums.document_count, given.sum(axis=1))
    np.testing.assert_allclose(sums.view_sum, np.nansum(latency, axis=0))
    np.testing.assert_array_equal(sums.document_max, np.max(np.where(given, latency, 0.0), axis=1))
    np.testing.assert_array_equal(sums.view_min, np.min(np.where(given, latency, np.inf), axis=0))


def line(costs: Costs, machines: Machines | None = None, documents: int = 1, together: int = 256) -> Scene:
    """Make three views, at stations 1 to 3: 0 is fed by the source, 1 by 0, 2 by both."""
    layout = layout_of([1, 2, 3], [0, 0, 1, 3], [0, 0, 1], 4)
    sizes = np.array([[100.0, 200.0, 300.0]])
    traffic = Traffic.of(sizes, np.array([1000.0]), documents, 0.0)
    links = one_place(delay=1.0, speed=100.0)
    return Scene(layout, machines or Machines.own(spread(4, links)), links, traffic, costs, together)


def test_times_by_hand() -> None:
    """Every step of three views takes what it should."""
    costs = FREE._replace(
        match=3.0, compute=5.0, batch=7.0, take=11.0, select=13.0, join=17.0, keep=19.0, send=23.0
    )
    times = reference.simulate(line(costs))
    assert times.computed.tolist() == [7 + 3 + 5]
    assert times.left.tolist() == [15 + 19 + 23]
    # It is sent in 1 s, and 1 s under way.
    first = 57 + 1 + 1 + 7 + 11
    # To station 2, then to station 3, which waits for the second input.
    second = first + 19 + 23 + 1 + 1 + 7 + 11 + 13
    third = second + 19 + 23 + 2 + 1 + 7 + 11 + 17
    assert times.there.tolist() == [[first, second, third]]


def test_batches_are_those_of_a_site() -> None:
    """The simulator takes together what a site does."""
    assert Scene(*line(FREE)[:5]).together == TOGETHER


def test_busy_sites_and_links_make_others_wait() -> None:
    """Ten documents at once come one after another over a link; a site takes them together if it may."""
    slow_link = reference.simulate(line(FREE, documents=10))
    assert slow_link.there[:, 0].tolist() == [2.0 + number for number in range(10)]
    one, many = (
        reference.simulate(line(FREE._replace(batch=100.0), documents=10, together=each)).there[-1, 0]
        for each in (1, 256)
    )
    assert one == pytest.approx(100 + 2 + 10 * 100)
    assert many == pytest.approx(100 + 2 + 2 * 100)


def test_sites_of_one_machine_share_its_cores() -> None:
    """Two sites that have something to do at the same time take turns on one core, and do not on two."""
    layout = layout_of([1, 2], [0, 0, 0], [], 3)
    traffic = Traffic.of(np.array([[0.0, 0.0]]), np.zeros(1), 1, 0.0)
    found = [
        reference.simulate(
            Scene(layout, Machines.one(3, cores), one_place(1.0), traffic, FREE._replace(take=10.0))
        ).there.tolist()
        for cores in (1, 2)
    ]
    assert found == [[[11.0, 21.0]], [[11.0, 11.0]]]


def test_levels_and_hops() -> None:
    """Views at one site are levels, and no hops."""
    layout = layout_of([1, 1, 2, 1], [0, 0, 1, 2, 4], [0, 1, 0, 2], 3)
    assert levels_of(layout).tolist() == [1, 2, 3, 4]
    least, most = hops_of(layout)
    assert (least.tolist(), most.tolist()) == ([1, 1, 2, 1], [1, 1, 2, 3])
    with pytest.raises(NetworkError, match="in a circle"):
        levels_of(layout_of([1, 1], [0, 1, 2], [1, 0], 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"links": one_place(delay=0.0)}, "a delay is not more than 0"),
        ({"links": one_place(speed=0.0)}, "a speed is not more than 0"),
        ({"machines": Machines.own([0])}, "1 stations have a city, and there are 4"),
        ({"together": 0}, "takes one message at least"),
        ({"traffic": Traffic.of(np.zeros((1, 2)), np.zeros(1), 1, 0.0)}, "sizes of 2 views are given"),
        ({"traffic": Traffic.of(np.zeros((1, 3)), np.zeros(1), 2, -1.0)}, "give times that rise"),
    ],
)
def test_scenes_are_refused(change: dict[str, Any], message: str) -> None:
    """What cannot be simulated is said in one line."""
    with pytest.raises(NetworkError, match=message):
        fast.simulate(line(FREE)._replace(**change))


def test_costs_are_refused() -> None:
    """No work takes less than nothing."""
    with pytest.raises(NetworkError, match=r"the cost batch is -1\.0"):
        Costs(batch=-1.0).check()


def test_calibration_finds_the_costs_again() -> None:
    """A simulated run serves as a real one: its costs are found, and tell other documents."""
    rng = random.Random(3)
    world = world_of("xpath", rng, 12, 4)
    layout, _ = layout_of_placed(world.plan().placed())
    costs = Costs(batch=5e-3, take=2e-4, keep=2e-4, send=2e-4)
    links, machines = one_place(), Machines.one(layout.stations, 2)
    sizes = np.full((1, layout.views), 100.0)

    def part(documents: int, interval: float) -> Observed:
        scene = Scene(layout, machines, links, Traffic.of(sizes, np.zeros(1), documents, interval), costs)
        return Observed(scene, predicted(Observed(scene, np.zeros(0)), costs))

    found = calibrate([part(3, 1.0), part(10, 0.0)], costs._replace(batch=1.0, take=1.0, keep=1.0, send=1.0))
    assert found.batch == pytest.approx(costs.batch, rel=0.1)
    assert error(part(5, 0.01), found) == pytest.approx(0.0, abs=0.05)


def test_slower_machines_meet_a_mean() -> None:
    """Costs are found that meet a mean and a least latency."""
    scene = line(Costs())._replace(links=one_place())
    found = figures_of(scene._replace(costs=slowed_to(scene, 2.0, 0.03)))
    assert found.latency.mean == pytest.approx(2.0, rel=0.01)


def test_saved_plans_are_simulated(tmp_path: Path) -> None:
    """Both plans of a directory are, on its sites or on fewer, with wires of a file; a picture shows them."""
    world = world_of("xpath", random.Random(1), 10, 5)
    given = Settings(fan_out=2.0, relax=1.5)
    Dissemination.build(world.subscriptions, world.documents, given).saved.save(tmp_path / "plan")
    before, after = simulate_plan(tmp_path / "plan", documents=3)
    assert before.results == after.results == 30
    assert int(before.per_level.sum()) == 10
    links = {"cities": ["here", "far"], "delay": [[0.001, 2.0], [2.0, 0.001]], "sites": {"site001": "far"}}
    (tmp_path / "links.json").write_text(json.dumps({**links, "sites": {"site000": "far", "site001": "far"}}))
    far, _ = simulate_plan(tmp_path / "plan", tmp_path / "links.json", 2, documents=3)
    assert far.latency.least > 2.0
    for name in ("a.svg", "a.png"):
        runs = [
            Delivered("plan", lowered, each.per_level, each.latency, each.delivery)
            for lowered, each in ((False, before), (True, after))
        ]
        write_charts("a plan", runs, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5_000


def test_files_of_links_are_refused(tmp_path: Path) -> None:
    """A wrong file is said in one line, with what would be right."""
    file = tmp_path / "links.json"
    for text, message in (
        ("{", "give `cities`, and `delay`"),
        ('{"cities": [], "delay": []}', "name one at least"),
        ('{"cities": ["a"], "delay": [[1, 2]]}', "`delay` has not 1 rows of 1 numbers"),
        ('{"cities": ["a"], "delay": [[1]], "sites": {"s": "b"}}', "site 's' is in 'b'"),
    ):
        file.write_text(text)
        with pytest.raises(TableError, match=message):
            read_links(file)
    with pytest.raises(TableError, match="cannot be read"):
        read_links(tmp_path / "absent.json")


def test_sites_are_dealt_out_to_cities() -> None:
    """The source is in the first city; sites whose city is told are there."""
    links = nine_cities()
    assert cities_of([BY_NAME, "a", "b"], links, {"b": "Toulouse"}).tolist() == [0, 1, 8]
    assert (links.delay == links.delay.T).all()
    assert links.delay.max() < 0.01


def test_plans_of_sites_give_what_the_memory_gives() -> None:
    """What the simulator delivers is what views give: each result of each document once."""
    subscriptions = [
        Subscription("all", "//news{id}[author{val}]//title{val}", "xpath"),
        Subscription("titles", "//news//title{val}", "xpath"),
    ]
    event = Event("e1", "<news><author>Bo</author><title>Up</title></news>", content_type="xml")
    layout, names = layout_of_placed(Dissemination.build(subscriptions, [event]).placed())
    assert (layout.stations, names) == (3, ["all", "titles"])
    traffic = Traffic.of(np.ones((1, 2)), np.ones(1), 7, 0.1)
    scene = Scene(layout, Machines.own([0, 0, 0]), one_place(), traffic, Costs())
    assert fast.totals(scene).sums.view_count.tolist() == [7, 7]


def test_a_join_runs_at_the_station_of_an_input() -> None:
    """View 2 is computed where view 0 is: view 1 comes there, and the result goes on to view 2."""
    layout = layout_of([1, 2, 3], [0, 0, 0, 2], [0, 1], 4)
    same, views = with_joins(layout, [1, 2, 3])
    assert same is layout
    assert views.tolist() == [0, 1, 2]
    moved, views = with_joins(layout, [1, 2, 1])
    assert views.tolist() == [0, 1, 2, 2]
    assert moved.station.tolist() == [1, 2, 3, 1]
    assert moved.inputs.tolist() == [3, 0, 1]
    # From the source to view 1, from there to the join, and on to view 2.
    assert [each.tolist() for each in hops_of(moved)] == [[1, 1, 2, 1], [1, 1, 3, 2]]
