"""Routing is safe: an event that matches a filter has one of the filter's keys, or the filter is open."""

from __future__ import annotations

import datetime as dt
import random
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event, Subscription, Taxonomy
from headgate.core.subscription import SPARQL, XPATH
from headgate.errors import GraphError, TableError
from headgate.jobs.sharding import _ShardKeys, tenant_of
from headgate.rdf.events.triples import write_lines
from headgate.rdf.index.columns import compile_all as compile_rdf
from headgate.rdf.index.columns import rdf_keys
from headgate.rdf.index.index import RdfIndex
from headgate.rdf.language.model import Options
from headgate.rdf.language.parse import parse_filter as parse_rdf
from headgate.rdf.language.printing import print_pattern as print_rdf
from headgate.records.compiling import RecordFinder
from headgate.records.index.index import RecordIndex
from headgate.records.keys import MOST, record_keys
from headgate.records.programs.binding import compile_filters
from headgate.runtime.sharding import Sharding
from headgate.runtime.shards import MOST_KEYS, Route, Routes, ShardPlacement
from headgate.runtime.targets import in_memory
from headgate.xml.events.reading import read_document
from headgate.xml.index.columns import compile_all as compile_xml
from headgate.xml.index.index import XmlIndex, xml_keys
from headgate.xml.language.parse import parse_filter as parse_xml
from headgate.xml.language.printing import print_pattern as print_xml
from tests.rdf.random_patterns import planted_pattern, random_graph, random_pattern, random_taxonomy
from tests.records.edges import FILTERS, VALUES
from tests.seeds import examples
from tests.xml.random_patterns import random_document
from tests.xml.random_patterns import random_pattern as random_tree

if TYPE_CHECKING:
    from headgate.contents.protocol import Keys
    from headgate.core.event import Id

A = ("a",)


def check_values(filters: list[str], values: list[Any]) -> int:
    """Assert that whatever matches is led to its filter; returns how many filters have keys."""
    keys = record_keys(compile_filters(filters).programs, A)
    index = RecordIndex.build([Subscription(number, text) for number, text in enumerate(filters)])
    routes = [None if each is None else Route("records", A, each) for each in keys]
    for value in values:
        row = {"a": value}
        batch = column_of(value)
        for number in index.match(Event("e", row)):
            route = routes[int(number)]
            assert route is None or route.met([Event("e", row)])[0], (filters[int(number)], value)
            assert route is None or batch is None or route.met(batch)[0], (filters[int(number)], value)
    return sum(each is not None for each in keys)


def column_of(value: object) -> pa.RecordBatch | None:
    """Put a value into a column of its own type, if it has one."""
    if isinstance(value, dt.datetime) and value.year in {1, 9999}:
        return None
    try:
        return pa.RecordBatch.from_pydict({"A": pa.array([value])})
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None


def test_every_edge_of_every_type_is_led_to_what_it_matches() -> None:
    assert check_values(FILTERS, VALUES) > 50


@examples(60)
@given(st.integers(0, 2**32))
def test_filters_of_several_clauses(seed: int) -> None:
    rng = random.Random(seed)
    equal = ["a = 1", "a = '1'", "a IN (1, 2)", "a IN ('x', 'y')", "a = ' 1 '", "a <=> 1", "1 = a"]

    def draw(depth: int) -> str:
        if depth == 0 or rng.random() < 0.2:
            return rng.choice([rng.choice(equal), rng.choice(equal), rng.choice(FILTERS), "b = 1", "TRUE"])
        parts = [draw(depth - 1) for _ in range(rng.choice([2, 2, 3]))]
        joined = rng.choice([" AND ", " AND ", " OR "]).join(f"({part})" for part in parts)
        return f"NOT ({joined})" if rng.random() < 0.1 else joined

    check_values([draw(3) for _ in range(20)], [*VALUES, "x", "y", 2, "2", "02", 2.0])


def key_list(text: str) -> list[str] | None:
    found = record_keys(compile_filters([text]).programs, A)[0]
    return None if found is None else sorted(found)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("a = 'x'", ["=x"]),
        ("a = 17", ["#17"]),
        ("a = '17'", ["#17", "=17"]),
        ("a IN ('x', 'y') AND b > 1", ["=x", "=y"]),
        ("a = 'x' AND a IN ('x', 'y')", ["=x"]),
        ("a = 'x' OR a = 'y' AND b > 1", ["=x", "=y"]),
        ("a BETWEEN 3 AND 5", ["#3", "#4", "#5"]),
        ("a = 'x' OR b = 1", None),
        ("NOT a = 'x'", None),
        ("a > 3", None),
        ("a LIKE 'x'", None),
        ("a = 1.5", None),
        ("a = TRUE", None),
        ("a IS NULL", None),
        ("a <=> NULL OR a = 'x'", None),
        ("array_contains(a, 'x')", None),
        ("b = 1", None),
        (f"a BETWEEN 0 AND {MOST}", None),
    ],
)
def test_keys_of_records(text: str, keys: list[str] | None) -> None:
    assert key_list(text) == keys


def test_nested_names_and_odd_rows() -> None:
    path = ("user", "country")
    keys = record_keys(compile_filters(["User.Country = 'CH'"]).programs, path)[0]
    assert keys == frozenset(["=CH"])
    route = Route("records", path, keys)
    rows: list[Any] = [
        {"USER": {"country": "CH"}},
        {"user": {"country": "DE"}},
        {"user": 1},
        {},
        {"user": None},
    ]
    assert route.met([Event("e", row) for row in rows]).tolist() == [True, False, False, False, False]
    batch = pa.RecordBatch.from_pylist(
        [{"user": {"Country": "CH"}}, {"user": None}, {"user": {"Country": "x"}}]
    )
    assert route.met(batch).tolist() == [True, False, False]
    assert route.met(pa.RecordBatch.from_pydict({"other": [1, 2]})).tolist() == [False, False]
    words = pa.array(["CH", "DE", None]).dictionary_encode()
    assert Route("records", A, frozenset(["=CH"])).met(pa.RecordBatch.from_pydict({"a": words})).tolist() == [
        True,
        False,
        False,
    ]


@examples(60)
@given(st.integers(0, 2**32))
def test_documents_are_led_to_the_patterns_that_they_match(seed: int) -> None:
    rng = random.Random(seed)
    texts = [print_xml(random_tree(rng)) for _ in range(12)]
    keys = xml_keys(compile_xml([parse_xml(text, XPATH) for text in texts]))
    index = XmlIndex.build([Subscription(number, text, XPATH) for number, text in enumerate(texts)])
    for _ in range(6):
        data = random_document(rng)
        found = index.match(Event("e", data, content_type="xml"))
        check_documents("xml", keys, read_document(data), found)


@examples(60)
@given(st.integers(0, 2**32), st.booleans(), st.booleans())
def test_graphs_are_led_to_the_patterns_that_they_match(seed: int, coerce: bool, injective: bool) -> None:
    rng = random.Random(seed)
    options = Options(coerce=coerce, injective=injective)
    taxonomy = Taxonomy.of(random_taxonomy(rng))
    graphs = [random_graph(rng) for _ in range(6)]
    patterns = [random_pattern(rng) for _ in range(8)] + [planted_pattern(rng, each) for each in graphs]
    texts = [print_rdf(each) for each in patterns]
    listed = frozenset(o for _, p, o in taxonomy.statements() if p.endswith("#type>"))
    keys = rdf_keys(compile_rdf([parse_rdf(text) for text in texts], options), listed)
    subscriptions = [Subscription(number, text, SPARQL) for number, text in enumerate(texts)]
    index = RdfIndex.build(subscriptions, taxonomy=taxonomy, options=options)
    for graph in graphs:
        found = index.match(Event("e", write_lines(graph), content_type="nt"))
        check_documents("rdf", keys, graph, found)


def check_documents(content: str, keys: list[Keys], document: Any, found: list[Id]) -> None:
    """Assert that a document has every key of each pattern that it matches: whichever is chosen leads on."""
    event = Event("e", document, content_type={"rdf": "nt", "xml": "xml"}[content])
    for number in found:
        for key in keys[int(number)] or ():
            assert Route(content, None, frozenset([key])).met([event]).all(), (number, key)


def test_a_class_that_the_taxonomy_has_instances_of_is_no_key() -> None:
    columns = compile_rdf([parse_rdf("ASK { ?x a <urn:A> }"), parse_rdf("ASK { ?x a <urn:B> }")], Options())
    assert rdf_keys(columns, frozenset(["<urn:A>"])) == [None, {"a <urn:B>"}]


def test_routes_of_shards_are_kept() -> None:
    shards: list[tuple[int, list[Keys]]] = [
        (2, [None, frozenset(["=x"])]),
        (2, [frozenset(["=y", "#1"]), frozenset(["=x"])]),
        (0, []),
        (1, [frozenset()]),
    ]
    routes = Routes.make("records", A, shards)
    assert routes.open.tolist() == [True, False, False, False]
    assert routes.route(0) is None
    found = [routes.route(number) for number in (1, 2, 3)]
    assert [each.keys for each in found if each] == [{"=x", "=y", "#1"}, set(), set()]
    assert sorted(routes.arrays()) == ["key_data", "key_offsets", "key_start"]
    rows = [{"a": "x"}, {"a": "1"}, {"a": 2}, {"a": None}, {"a": 1.0}, {"a": [1]}]
    assert found[0] is not None
    assert found[0].met([Event("e", row) for row in rows]).tolist() == [True, True, False, False, True, True]


def test_a_shard_of_very_many_keys_is_met_by_all() -> None:
    many = frozenset(f"={number}" for number in range(MOST_KEYS + 1))
    routes = Routes.make("records", A, [(1, [many]), (1, [frozenset([*many][1:])]), (1, [frozenset(["=x"])])])
    assert routes.open.tolist() == [True, False, False]
    assert routes.keys.size == MOST_KEYS + 1
    told = _ShardKeys()
    told.take(["=x"])
    told.take(many)
    told.take(["=y"])
    assert (told.open, told.keys) == (True, set())


IDS = [f"s{number}" for number in range(400)]


def homes(sharding: Sharding, keyed: int = 0, tenants: Any = None, keys: Any = None) -> list[int]:
    none: Any = pa.array([None] * len(IDS), pa.string())
    placing = ShardPlacement(sharding, keyed, len(IDS) - keyed)
    found = placing.homes(pa.array(IDS), none if tenants is None else tenants, none if keys is None else keys)
    assert found.dtype == np.int64
    places: list[int] = found.tolist()
    return places


def test_places() -> None:
    by_hash = homes(Sharding.of(4))
    assert set(by_hash) == {0, 1, 2, 3}
    names = pa.array([None if number % 10 == 0 else f"t{number % 7}" for number in range(len(IDS))])
    by_tenant = homes(Sharding.of(4, "tenant"), tenants=names)
    seen: dict[str, set[int]] = {}
    for name, home, other in zip(names.to_pylist(), by_tenant, by_hash, strict=True):
        if name is None:
            assert home == other
        else:
            seen.setdefault(name, set()).add(home)
    assert all(len(each) == 1 for each in seen.values())
    # A quarter is open, and has a quarter of the shards.
    keys = pa.array([None if number % 4 == 0 else f"k{number % 50}" for number in range(len(IDS))])
    by_access = homes(Sharding.of(8, "access", "a"), keyed=300, keys=keys)
    opened = {home for home, key in zip(by_access, keys.to_pylist(), strict=True) if key is None}
    assert opened == {0, 1}
    assert not opened & {home for home, key in zip(by_access, keys.to_pylist(), strict=True) if key}
    assert homes(Sharding.of(8, "access", "a")) == homes(Sharding.of(8))
    assert homes(Sharding(1, "access", "a"), keyed=300, keys=keys) == [0] * len(IDS)


@pytest.mark.parametrize(
    ("count", "by", "column", "reason"),
    [
        (0, "hash", None, "0 shards: give a number from 1 to 1,000"),
        (2, "luck", None, "there is no rule 'luck' for shards: use 'hash', 'tenant', 'access'"),
        (2, "access", "a..b", "'a..b' is not a name"),
        (2, "hash", "a", "shards by hash look at ids alone"),
    ],
)
def test_shards_that_cannot_be(count: int, by: str, column: str | None, reason: str) -> None:
    with pytest.raises((TableError, GraphError), match=reason):
        Sharding.of(count, by, column)


def test_access_needs_an_attribute_of_records_and_none_of_documents() -> None:
    with pytest.raises(TableError, match="give --shard-column"):
        Sharding.of(2, "access").check_content("records")
    with pytest.raises(TableError, match="leave out --shard-column"):
        Sharding.of(2, "access", "a").check_content("xml")
    Sharding.of(2, "access").check_content("rdf")
    assert Sharding.of(2, "access", "source").routed_by("records") is None
    assert RecordFinder(None).of_bytes(b"") == []


def test_tenants_have_types() -> None:
    rows = [{"tenant": "1"}, {"TENANT": 1}, {"tenant": True}, {"tenant": None}, {}]
    found = [tenant_of(msgspec.json.encode(row).decode(), "Tenant") for row in rows]
    assert found == ["=1", "#1", "true", None, None]


def test_want_of_memory_is_told_in_one_line() -> None:
    from headgate.errors import MachineError, SnapshotError

    for error in (MemoryError(), OSError(12, "Cannot allocate memory")):
        with pytest.raises(MachineError, match=r"big does not fit into the memory.* of a worker"):  # noqa: SIM117
            with in_memory("big"):
                raise error
    with pytest.raises(SnapshotError, match="damaged"), in_memory("big"):
        raise SnapshotError("damaged")
