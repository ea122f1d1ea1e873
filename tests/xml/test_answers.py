"""Answers against the definition, and what is made of them: rows, contents, sizes."""

from __future__ import annotations

import json
import pickle
import random

import numpy as np
import pytest

from headgate.errors import EventError
from headgate.xml.answers.answers import Answer, answer, prepared
from headgate.xml.answers.structural import Ids, kept
from headgate.xml.events import serialising
from headgate.xml.events.reading import read_document
from headgate.xml.events.serialising import content, label_of_content, value_of_content
from headgate.xml.events.subject import Subject
from headgate.xml.language.model import (
    CHILD,
    CONT,
    DESCENDANT,
    ID,
    TEXT,
    VAL,
    Node,
    Pattern,
    StructuralId,
    covers,
    is_attribute,
)
from headgate.xml.language.model import (
    Test as Condition,
)
from tests.seeds import seeds
from tests.xml.document_rows import shown
from tests.xml.random_patterns import random_document, random_pattern
from tests.xml.reference import matches, satisfies, taking_part, tuples

pytestmark = pytest.mark.jit_off

ENOUGH = 2_000


@pytest.mark.parametrize("seed", seeds(60))
def test_agrees_with_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    document = read_document(random_document(rng))
    for _ in range(12):
        pattern = random_pattern(rng)
        found = answer(pattern, document)
        assert (found is not None) == matches(pattern, document)
        if found is None:
            continue
        assert [ids.pre.tolist() for ids in found.ids] == taking_part(pattern, document)
        for place, (node, ids) in enumerate(zip(pattern.nodes, found.ids, strict=True)):
            nodes = ids.pre.tolist()
            assert [StructuralId(*each) for each in zip(*(c.tolist() for c in ids), strict=True)] == [
                document.id(image) for image in nodes
            ]
            values, conts = found.values[place], found.contents[place]
            assert values == (tuple(map(document.val, nodes)) if VAL in node.returns else None)
            expected = tuple(content(document, image) for image in nodes) if CONT in node.returns else None
            assert conts == expected
        rows = tuples(pattern, document)
        if len(rows) <= ENOUGH:
            listed = found.tuples(ENOUGH)
            assert list(listed.rows) == rows
            assert listed.complete
            assert found.tuples(1) == listed._replace(rows=listed.rows[:1], complete=len(rows) <= 1)


@pytest.mark.parametrize("seed", seeds(60))
def test_semijoins_need_no_document(seed: int) -> None:
    rng = random.Random(seed)
    document = read_document(random_document(rng))
    for _ in range(8):
        pattern = random_pattern(rng)
        candidates = []
        for node in pattern.nodes:
            which = [image for image in range(len(document.labels)) if satisfies(node, image, document)]
            rows = np.array([document.id(image) for image in which], np.int32).reshape(-1, 3)
            candidates.append(Ids(*(np.ascontiguousarray(column) for column in rows.T)))
        found = kept(pattern, candidates)
        if found is None:
            assert not matches(pattern, document)
        else:
            taken = [ids.take(which) for ids, which in zip(candidates, found, strict=True)]
            assert [ids.pre.tolist() for ids in taken] == taking_part(pattern, document)


def test_many_combinations_are_not_made_to_list_a_few() -> None:
    document = read_document(f"<a>{'<b/>' * 2_000}{'<c/>' * 2_000}</a>")
    nodes = [Node("a"), *(Node("b", CHILD, 0, (), (ID,)) for _ in range(4)), *(Node("c", CHILD, 0),) * 4]
    found = answer(Pattern(tuple(nodes)), document)
    assert found is not None
    assert found.rows() == 1 + 8 * 2_000
    listed = found.tuples(3)
    assert [[one.pre for one in row if isinstance(one, StructuralId)] for row in listed.rows] == [
        [1, 1, 1, 1],
        [1, 1, 1, 2],
        [1, 1, 1, 3],
    ]
    assert not listed.complete


def test_rows_have_names_and_are_ready_for_json() -> None:
    document = read_document("<a xmlns:n='urn:n'><n:b x='1'>2</n:b></a>")
    nodes = (
        Node("a", DESCENDANT, returns=(ID,)),
        Node("{urn:n}b", CHILD, 0, (), (VAL,)),
        Node("@x", CHILD, 1, (), (VAL,)),
        Node("*:b", DESCENDANT, 0, (), (CONT,)),
    )
    found = answer(Pattern(nodes), document)
    assert found is not None
    written = '<n0:b xmlns:n0="urn:n" x="1">2</n0:b>'
    assert found.tuples().plain() == [{"a.id": [0, 3, 0], "b.val": "2", "@x.val": "1", "b2.cont": written}]
    assert json.loads(json.dumps(found.plain())) == [
        {"label": "a", "ids": [[0, 3, 0]]},
        {"label": "{urn:n}b", "ids": [[1, 2, 1]], "val": ["2"]},
        {"label": "@x", "ids": [[2, 0, 2]], "val": ["1"]},
        {"label": "*:b", "ids": [[1, 2, 1]], "cont": [written]},
    ]
    assert found.rows() == 4
    assert found.nbytes == 4 * 12 + 2 + len(written)


def test_a_pattern_that_returns_nothing_has_one_empty_row() -> None:
    found = answer(Pattern((Node("a"),)), read_document("<a/>"))
    assert found is not None
    assert found.tuples().plain() == [{}]
    assert answer(Pattern(()), read_document("<a/>")) is not None


def test_answers_stand_alone() -> None:
    pattern = Pattern((Node("b", DESCENDANT, returns=(VAL,)),))
    found = answer(pattern, read_document("<a><b>1</b><b>2</b></a>"))
    again: Answer = pickle.loads(pickle.dumps(found))
    assert again == found
    assert hash(again) == hash(found)
    assert again.tuples().plain() == [{"b.val": "1"}, {"b.val": "2"}]
    assert answer(pattern, read_document("<a><b>1</b><c/><b>2</b></a>")) != found
    assert answer(pattern, read_document("<a><b>1</b><b>3</b></a>")) != found
    assert found != 1


def test_numbers_with_many_digits_are_compared_exactly() -> None:
    pattern = prepared(Pattern((Node("b", DESCENDANT, tests=(Condition("=", 9007199254740994.0),)),)))
    text = "<a><b>9007199254740992</b><b>9007199254740994.0</b><b>9007199254740995.1</b></a>"
    found = pattern.ask(Subject(read_document(text)))
    assert found is not None
    assert found.ids[0].pre.tolist() == [3]
    assert pattern.ask(Subject(read_document("<a><b>9007199254740992</b></a>"))) is None


# Contents


@pytest.mark.parametrize("seed", seeds(150))
def test_content_parses_to_the_same_subtree(seed: int) -> None:
    document = read_document(random_document(random.Random(seed)))
    for node in range(len(document.labels)):
        label, text = document.label(node), content(document, node)
        if label == TEXT or is_attribute(label):
            assert text == document.val(node)
            continue
        again = read_document(text)
        end = int(document.ends[node]) + 1
        assert [again.label(place) for place in range(len(again.labels))] == [
            document.label(place) for place in range(node, end)
        ]
        assert again.ends.tolist() == (document.ends[node:end] - node).tolist()
        assert [again.val(place) for place in range(end - node)] == [
            document.val(place) for place in range(node, end)
        ]
        assert content(again, 0) == text, "the same subtree is the same text"
        assert value_of_content(text) == document.val(node)
        assert label_of_content(text) == label
        if node == 0:
            assert shown(again) == shown(document)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a></a>", "<a/>"),
        ("<a  b='1'\n c='2' ></a>", '<a b="1" c="2"/>'),
        ("<a><b/>x<c><d/></c></a>", "<a><b/>x<c><d/></c></a>"),
        ("<a b='&lt;&gt;&amp;\"&#9;&#10;&#13;'/>", '<a b="&lt;&gt;&amp;&quot;&#9;&#10;&#13;"/>'),
        ("<a>&lt;&gt;&amp;\"'\t\n&#13;é</a>", "<a>&lt;&gt;&amp;\"'\t\n&#13;é</a>"),
        ("<a><![CDATA[<b/>]]></a>", "<a>&lt;b/&gt;</a>"),
        ("<a xml:lang='en'/>", '<a xml:lang="en"/>'),
        ("<a xmlns='u:a'><b xmlns=''/></a>", '<n0:a xmlns:n0="u:a"><b/></n0:a>'),
        ("<p:a xmlns:p='u:&amp;' p:x='1'/>", '<n0:a xmlns:n0="u:&amp;" n0:x="1"/>'),
    ],
)
def test_content_is_written_one_way(text: str, expected: str) -> None:
    document = read_document(text)
    assert content(document, 0) == expected
    assert covers(label_of_content(expected), document.label(0))


def test_a_text_is_not_taken_for_an_element() -> None:
    with pytest.raises(ValueError, match="the cont of no element"):
        label_of_content("x")


def test_documents_do_not_come_out_many_times_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serialising, "LARGEST", 1_000)
    document = read_document("<a>" * 50 + "x" * 30 + "</a>" * 50)
    for what in (VAL, CONT):
        with pytest.raises(EventError, match="has more than 1,000 bytes"):
            answer(Pattern((Node("a", DESCENDANT, returns=(what,)),)), document)
