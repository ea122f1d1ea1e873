"""What was likeliest meant is said where a name is wrong: one line, with the place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headgate.errors import HeadgateError
from headgate.records.language.parse import parse_filter
from headgate.runtime.rows import read_line, read_node, read_subscription
from tests.spark.files import put

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.running import Command

FILTERS = {
    "topic LIKE new": "LIKE takes a pattern in quotes (did you mean 'new', in quotes?), at character 12",
    "array_contain(tags, 'x')": "there is no function array_contain (did you mean array_contains?), at",
    "startwith(name, 'x')": "there is no function startwith (did you mean startswith?), at character 1",
    "uper(a) = 'X'": "there is no function uper (did you mean upper?), at character 1: ⟪uper(a) = 'X'",
}


@pytest.mark.parametrize("text", FILTERS)
def test_filters(text: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_filter(text)
    assert str(caught.value).startswith(FILTERS[text])


ROWS: list[tuple[Callable[..., object], str, str]] = [
    (
        read_subscription,
        '{"id": 1, "filtr": "a > 1"}',
        "the row has no 'filter': a subscription is an id and a filter (is 'filtr' meant?)",
    ),
    (read_node, '{"idd": 1}', "the row has no 'id': give text or a whole number (is 'idd' meant?)"),
    (read_node, '{"age": 1}', "the row has no 'id': give text or a whole number"),
    (
        read_subscription,
        '{"id": 1, "filter": "a > 1", "dialect": "sqll"}',
        (
            "dialect 'sqll' is not known: use 'sql', 'labels', 'sparql', 'tuples', 'xpath', "
            "'tree', 'eventbridge', 'cloudevents', 'cesql', 'elasticsearch' or 'vespa'"
        ),
    ),
]


@pytest.mark.parametrize(("read", "row", "reason"), ROWS)
def test_rows(read: Callable[..., object], row: str, reason: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        read(read_line(row), "sql")
    hint = " (did you mean 'sql'?)" if reason.startswith("dialect") else ""
    assert str(caught.value) == reason + hint


COMMANDS = [
    (("validat", "s.csv"), "No such command 'validat'. Did you mean 'validate'? (see headgate --help)"),
    (
        ("validate", "--eventz", "e"),
        "No such option '--eventz'. Did you mean '--events'? (see headgate validate",
    ),
    (
        ("validate", "s.csv", "--dialect", "xpaht"),
        "'vespa'. Did you mean 'xpath'? (see headgate validate --help)",
    ),
    (("match", "--mode", "relaxd"), "is not one of 'exact', 'relaxed'. Did you mean 'relaxed'?"),
    (("validate", "s.csv"), "has no column 'filter'; its columns are id, filtr (is 'filtr' meant?)"),
]


@pytest.mark.parametrize(("words", "reason"), COMMANDS)
def test_commands(headgate: Command, tmp_path: Path, words: tuple[str, ...], reason: str) -> None:
    put(tmp_path / "s.csv", "id,filtr\n1,a > 1\n")
    ran = headgate(*(str(tmp_path / word) if word == "s.csv" else word for word in words))
    assert reason in ran.complaint
