"""Options of matching: whatever is a field is an option, a key and a keyword, and a question has it whole."""

from __future__ import annotations

import inspect
import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import pytest

import headgate.spark as hg
from headgate import Engine
from headgate.cli import cli
from headgate.core.settings import settings_of
from headgate.engine.question import ALL, MatchSettings, Question, Top
from headgate.errors import TableError
from headgate.stream.settings import StreamSettings
from headgate.tables.settings import Match

if TYPE_CHECKING:
    from collections.abc import Callable

OPTIONS = settings_of(MatchSettings)


@pytest.mark.parametrize(
    "call", [Engine.match_batch, Engine.top_batch, hg.match, hg.top, hg.refused, hg.each_batch]
)
def test_each_is_a_keyword(call: Callable[..., object]) -> None:
    found = inspect.signature(call).parameters
    # What goes with another option is said by the value of that.
    assert [each.name for each in OPTIONS if not each.needs and each.name not in found] == []


@pytest.mark.parametrize("command", ["match", "stream"])
def test_each_is_an_option(command: str) -> None:
    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    assert {each.flag for each in OPTIONS} <= {flag for each in found.params for flag in each.opts}


def test_requests_hand_it_on_whole() -> None:
    asked: dict[str, Any] = {"snapshot": "s", "events": "e", "output": "o", "results": True}
    wanted = Question(Top.of(3), results=True, results_limit=7)
    requests: list[Callable[..., Any]] = [Match, partial(StreamSettings, state="t")]
    for made in requests:
        assert made(**asked, top=3, results_limit=7).question == wanted
        assert made(**asked).question == Question.of(results=True)
    assert pickle.loads(pickle.dumps(wanted)) == wanted != ALL


def test_what_means_nothing_is_refused() -> None:
    with pytest.raises(TableError, match="results_limit says how many rows"):
        Question(results_limit=3)
    with pytest.raises(TableError, match="results is 0: give True, or how many rows of a match, from 1 to"):
        Question.of(results=0)
