"""One contract: every surface, content, graph and ranking gives what the definitions say.

A cell is one of each. It is asked for the rows that it refuses, for all matches or the best, and for
explanations. In the default lane the shapes of snapshots and the formats of tables rotate over the cells;
nightly there are all of them, over more seeds.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from headgate import Event, Subscription
from headgate.core.rooms import RDF, RECORDS, XML
from headgate.engine.question import Top
from headgate.errors import HeadgateError
from headgate.graph.path_cost import DEFAULT_PATH_COST, PathCost
from headgate.runtime.sharding import ACCESS, HASH, TENANT, Sharding
from tests.contract.connect import Connect
from tests.contract.frames import Frames, FrameStream
from tests.contract.jobs import Batch, Local, LocalStream, Made, Snapshots, Stream, explained
from tests.contract.library import Library
from tests.contract.reference import Reference, holds
from tests.contract.surfaces import Shape
from tests.contract.telling import CONTENTS, MIXED, Thing, Wish
from tests.contract.world import Question, draw_world
from tests.seeds import NIGHTLY, seeds
from tests.spark.without_spark import compile_graph_lines, match_lines, meetings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.contract.surfaces import Surface
    from tests.contract.world import World
    from tests.spark.files import Row

SURFACES: tuple[type[Surface], ...] = (
    Library,
    Local,
    LocalStream,
    Batch,
    Frames,
    FrameStream,
    Connect,
    Stream,
)
ALL, EXACT, RELAXED = RANKINGS = ("all", "exact", "relaxed")
ONE = Sharding(1)
FACTORS = {
    RECORDS: {"age": 0.5, "price": 0.0},
    RDF: {"urn:age": 0.5, "?price": 0.0},
    XML: {"age": 0.5, "price": 0.0},
    MIXED: {"age": 0.5, "price": 0.0, "urn:age": 0.5, "?price": 0.0},
}
SEEDS = tuple(seeds(12, 1))


class Cell(NamedTuple):
    """One cell, and how its tables are shaped."""

    surface: type[Surface]
    content: str
    graph: bool
    ranking: str
    sharding: Sharding = ONE
    form: str = "jsonl"

    @property
    def name(self) -> str:
        """Name the cell, for failures."""
        cut = "one piece" if self.sharding.count == 1 else f"{self.sharding.count} by {self.sharding.by}"
        graph = "graph" if self.graph else "plain"
        shape = f"-{cut}-{self.form}" if self.surface is not Library else ""
        return f"{self.surface.name}-{self.content}-{graph}-{self.ranking}{shape}"

    @property
    def ranked(self) -> bool:
        """Whether the snapshot is made for ranks; a graph ranks by scores as it is."""
        return self.ranking == RELAXED or (self.ranking == EXACT and not self.graph)

    def question(self, *, changed: bool) -> Question:
        """Say what is asked."""
        if self.ranking == ALL:
            return Question(None, changed)
        if self.ranking == EXACT:
            path = (
                PathCost("times", 0.5, hops=True) if self.graph and self.content != XML else DEFAULT_PATH_COST
            )
            return Question(Top.of(3, path=path), changed)
        return Question(Top.of(4, RELAXED, FACTORS[self.content]), changed)


SHAPES = {
    # By content, whether there is a graph, and whether the snapshot is made for ranks.
    (RECORDS, False, False): Sharding.of(3, ACCESS, "topic"),
    (RECORDS, False, True): Sharding.of(2, TENANT),
    (RECORDS, True, False): ONE,
    (RECORDS, True, True): Sharding.of(2, HASH),
    (RDF, False, False): ONE,
    (RDF, False, True): Sharding.of(3, HASH),
    (RDF, True, False): Sharding.of(2, ACCESS),
    (RDF, True, True): ONE,
    (XML, False, False): Sharding.of(3, ACCESS),
    (XML, False, True): ONE,
    (XML, True, False): ONE,
    (XML, True, True): Sharding.of(2, TENANT),
    (MIXED, False, False): ONE,
    (MIXED, False, True): Sharding.of(2, HASH),
    (MIXED, True, False): ONE,
    (MIXED, True, True): Sharding.of(2, ACCESS),
}
"""In the default lane: one piece and shards, every rule, with a graph and without."""
FORMS = ("jsonl", "parquet")
PLACES = [
    (content, graph, ranking)
    for content in (*CONTENTS, MIXED)
    for graph in (False, True)
    for ranking in RANKINGS
]
SOME: dict[str, dict[tuple[str, bool], tuple[str, ...]]] = {
    "batch": {(RECORDS, False): (ALL,), (XML, True): (RELAXED,), (MIXED, False): (ALL,)},
    "frames": {(RECORDS, True): (EXACT,), (RDF, True): (ALL,), (MIXED, False): (ALL,)},
    "frame stream": {(RECORDS, True): (RELAXED,)},
    "local": {(MIXED, False): (ALL, RELAXED), (MIXED, True): (EXACT, RELAXED)},
    "local stream": {
        (RECORDS, False): (RELAXED,),
        (RECORDS, True): (ALL,),
        (RDF, False): (ALL,),
        (RDF, True): (EXACT,),
        (XML, False): (ALL,),
        (XML, True): (EXACT,),
        (MIXED, False): (RELAXED,),
        (MIXED, True): (EXACT,),
    },
    "stream": {(RECORDS, True): (EXACT,)},
}
"""In the default lane the jobs share a snapshot for each content with a graph, and for each without.

What has no cell there is asked of the library and of the jobs in this process.
"""


def default_cells() -> list[Cell]:
    """List the cells of the default lane."""
    found = []
    for surface in SURFACES:
        for number, place in enumerate(PLACES):
            cell = Cell(surface, *place)
            if surface is not Library:
                # Formats change from cell to cell, with a graph the other way round.
                shape = SHAPES[cell.content, cell.graph, cell.ranked]
                cell = cell._replace(sharding=shape, form=FORMS[number % 2])
            others = () if surface.spark else RANKINGS
            if cell.ranking in SOME.get(surface.name, {}).get((cell.content, cell.graph), others):
                found.append(cell)
    return found


def nightly_cells() -> list[Cell]:
    """List all others: every cell of the jobs in all shapes, in one piece in both formats."""
    found = []
    for content, graph, ranking in PLACES:
        column = "topic" if content == RECORDS else None
        cut = [Sharding.of(2), Sharding.of(3, ACCESS, column), Sharding.of(5, TENANT)]
        cut.append(Sharding.of(16, ACCESS, column))
        shapes = [(ONE, form) for form in FORMS]
        shapes += [(each, FORMS[number % 2]) for number, each in enumerate(cut)]
        if content == MIXED:
            shapes = [(each, FORMS[number % 2]) for number, each in enumerate((ONE, ONE, *cut[:2]))]
        for surface in SURFACES:
            if surface is not Library:
                found += [Cell(surface, content, graph, ranking, *shape) for shape in shapes]
    default = default_cells()
    return [cell for cell in found if cell not in default]


def cells() -> list[Any]:
    """List all cells, marked as they are."""
    found = []
    for nightly, some in ((False, default_cells()), (True, nightly_cells())):
        for cell in some:
            marks = [pytest.mark.spark] if cell.surface.spark else []
            marks += [pytest.mark.nightly] if nightly else []
            found.append(pytest.param(cell, marks=marks, id=cell.name))
    return found


@cache
def world_of(content: str, *, graph: bool, ranked: bool) -> World:
    """Draw a world, once. Ids are numbers in half of them."""
    return draw_world(content, SEEDS, graph=graph, ranked=ranked, numbered=graph == (content != RDF))


@cache
def reference_of(content: str, *, graph: bool, ranked: bool) -> Reference:
    """Keep what was worked out of a world."""
    return Reference(world_of(content, graph=graph, ranked=ranked))


@cache
def library_of(content: str, *, graph: bool, ranked: bool) -> Library:
    """Keep the engines of a world."""
    return Library(world_of(content, graph=graph, ranked=ranked))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Keep snapshots for all cells."""
    return Made(tmp_path_factory.mktemp("contract"))


class Asking:
    """A surface in one cell, and what it must say."""

    def __init__(self, cell: Cell, shape: Shape) -> None:
        self.cell = cell
        self.world = world_of(cell.content, graph=cell.graph, ranked=cell.ranked)
        self.surface = cell.surface(self.world, shape)
        self.reference = reference_of(cell.content, graph=cell.graph, ranked=cell.ranked)

    def check_compiled(self) -> None:
        """Compare the refused rows of the tables that are compiled."""
        world = self.world
        bad = (*world.bad_nodes, *world.bad_edges, *world.bad_subscriptions)
        self._same("refused rows", self.surface.compile(), self._told(bad))

    def check_answer(self, question: Question) -> None:
        """Compare matches, refused events and refused changes."""
        surface, world = self.surface, self.world
        wanted: Counter[tuple[Any, ...]] = Counter()
        odd = [] if surface.columns else world.odd
        for event in (*world.events, *odd, *([] if surface.once else world.repeated)):
            name = str(event["id"]) if surface.text_ids else event["id"]
            wanted.update((name, *row) for row in self.reference.rows(event, question))
        found = surface.match(question)
        assert wanted, "there is something to find"
        self._same("rows", found, wanted)
        refused = self._told(each for each in world.bad_events if each.columns or not surface.columns)
        if surface.once:
            refused.update(
                (str(row["id"]), f"event {row['id']!r} was seen before, within the window")
                for row in world.repeated
            )
        self._same("refused events", surface.refused(), refused)
        if question.changed:
            self._same("refused changes", surface.refused_changes(), self._told(world.bad_changes))

    def check_explained(self, question: Question, library: Surface) -> None:
        """Compare explanations with the definition and with those of the library, to the letter."""
        for event, row in self._pairs(question):
            told = self.surface.explain(event, row["id"])
            matches = row["id"] in [
                found[0] for found in self.reference.rows(event, Question(None, question.changed))
            ]
            name = f"{self.cell.name}: event {event['id']!r}, subscription {row['id']!r}"
            assert told.matches is matches, name
            wanted = library.explain(event, row["id"])
            if self.cell.sharding.count > 1:
                # What leads to a filter depends on those that are beside it.
                told, wanted = told.without_index(), wanted.without_index()
            assert told == wanted, name

    def _pairs(self, question: Question) -> Iterable[tuple[Row, Row]]:
        """Choose some events, and for each a subscription that gets it and one that does not; late ones."""
        given, events = self.world.at(question)[::-1], self.world.events
        if self.cell.graph and self.cell.sharding.count > 1:
            # Of others see the last test.
            events = [event for event in events if self.world.leads_on(event)]
        for event in events[:: len(events) // 2]:
            rows = {found[0] for found in self.reference.rows(event, Question(None, question.changed))}
            for gets in (True, False):
                yield from [(event, row) for row in given if (row["id"] in rows) is gets][:1]

    def _told(self, bad: Iterable[Any]) -> Counter[tuple[str, str]]:
        objects = self.surface.objects
        return Counter(each.told(objects=objects) for each in bad if each.has_object or not objects)

    def _same(self, what: str, found: Counter[Any], wanted: Counter[Any]) -> None:
        """Compare rows; a failure names the cell, the seed and the first row that differs."""
        many, few = found - wanted, wanted - found
        if not many and not few:
            return
        row = min((*many, *few), key=repr)
        seed = self.world.seed_of(row[0])
        side = "should not be there" if row in many else "is missing"
        pytest.fail(
            f"{self.cell.name}, seed {seed}: of {what}, {row!r} {side} "
            f"({many.total()} too many, {few.total()} missing)"
        )


@pytest.mark.parametrize("cell", cells())
def test_contract(cell: Cell, made: Made, request: pytest.FixtureRequest) -> None:
    """A surface refuses, matches and explains as it is defined."""
    library = library_of(cell.content, graph=cell.graph, ranked=cell.ranked)
    # Asked for by whoever needs it: the library needs no Spark.
    snapshots = Snapshots(made, lambda: request.getfixturevalue("spark"))
    out = FORMS[1 - FORMS.index(cell.form)]
    asking = Asking(cell, Shape(snapshots, cell.sharding, cell.form, out))
    asking.check_compiled()
    # What takes changes is asked after them; where that costs little, and nightly, also before them.
    before = NIGHTLY or not (cell.surface.spark and cell.surface.changes)
    for changed in (*([False] if before else []), *([True] if cell.surface.changes else [])):
        question = cell.question(changed=changed)
        asking.check_answer(question)
        library.turn_to(question)
        asking.check_explained(question, library)


@pytest.mark.parametrize("seed", seeds(60))
def test_contents_tell_one_world(seed: int) -> None:
    """What a wish means, its filter says in every content."""
    rng = random.Random(seed)
    wishes, things = [Wish(), *(Wish.draw(rng) for _ in range(12))], [Thing.draw(rng) for _ in range(8)]
    for content in CONTENTS:
        for thing in things:
            event = Event.from_row({"id": 1, **thing.row(content)})
            for wish in wishes:
                assert holds(content, event, wish.text(content)) is wish.met(thing), (content, wish, thing)


@pytest.mark.parametrize("content", CONTENTS)
def test_an_id_of_the_other_kind_is_refused_in_the_same_words(content: str) -> None:
    """An id that is text among numbers is refused alike, with a graph and without."""
    told = []
    for graph in (False, True):
        world = draw_world(content, (1,), graph=graph, ranked=False, numbered=True)
        with pytest.raises(HeadgateError) as refused:
            Library(world).engine.subscribe(Subscription(**{**world.subscriptions[0], "id": "text"}))
        told.append(str(refused.value))
    assert told[0] == told[1]


def test_shards_explain_as_one_piece(tmp_path: Path) -> None:
    """An event that comes from a node without edges is explained alike in one piece and in shards."""
    world = draw_world(RECORDS, (1,), graph=True, ranked=False)
    row = {**world.subscriptions[0], "filter": "age > 30"}
    event: Row = {"id": "e", "source": world.nodes[-1]["id"], "age": 3}
    assert not world.leads_on(event)
    told = []
    for shards in (1, 2):
        place = tmp_path / str(shards)
        compile_graph_lines(place, world.nodes, world.edges, [row], shards=shards)
        told.append(explained(place, world, event, row["id"]))
    assert told[0] == told[1]


def test_only_events_meet_shards(tmp_path: Path) -> None:
    """Events meet a graph in one piece at most once each, whatever is asked; those from nowhere do not."""
    world = draw_world(RECORDS, (1,), graph=True, ranked=False)
    compile_graph_lines(tmp_path / "graph", world.nodes, world.edges, world.subscriptions)
    rows = [*world.events, {"id": "lost", "source": "nowhere", "age": 3}]
    for top in (None, Top.of(2)):
        assert match_lines(tmp_path / "graph", rows, top=top).met <= len(world.events)


@pytest.mark.parametrize("top", [None, Top.of(2), Top.of(2, "relaxed")])
@pytest.mark.parametrize("memory", [1, 1 << 30])
def test_refused_events_meet_no_shard_of_a_graph(tmp_path: Path, top: Top | None, memory: int) -> None:
    """Whether shards lie in one memory or not; a node that leads nowhere is on one shard."""
    nodes: list[Row] = [{"id": "pub"}, {"id": "net"}, {"id": "idle"}]
    rows: list[Row] = [
        {"id": f"s{n}", "filter": f"a > {n}", "node": "net", "weights": [1]} for n in range(20)
    ]
    compile_graph_lines(
        tmp_path / "g", nodes, [{"source": "pub", "target": "net"}], rows, shards=3, ranked=True
    )
    refused: list[Row] = [
        {"id": 2, "source": "nowhere", "a": 50},
        {"id": 3, "a": 50},
        {"source": "pub", "a": 1},
    ]
    events: list[Row] = [{"id": 1, "source": "pub", "a": 50}, *refused, {"id": 4, "source": "idle", "a": 50}]
    assert meetings(tmp_path / "g", events, top, memory) == 3 + 1
