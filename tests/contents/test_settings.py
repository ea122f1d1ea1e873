"""Settings of filters: whatever is a field is an option, a key and a keyword, and a kind obeys it."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import click
import pytest

import headgate.spark as hg
from headgate import Dissemination, Engine
from headgate.cli import cli
from headgate.contents.kind import SETTINGS, FilterSettings
from headgate.contents.registry import kinds
from headgate.contents.settings import NAMES, PLAIN
from headgate.errors import SubscriptionError
from headgate.tables.settings import Backtest, Compile

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("call", "names"),
    [(Engine.build, PLAIN), (hg.compile, PLAIN), (hg.backtest, PLAIN), (Dissemination.build, NAMES)],
)
def test_each_is_a_keyword(call: Callable[..., object], names: Any) -> None:
    found = inspect.signature(call).parameters
    assert [name for name in names if name not in found] == []
    assert [found[name].default for name in names] == [None] * len(names)


@pytest.mark.parametrize("command", ["compile", "validate", "explain", "backtest"])
def test_each_is_an_option(command: str) -> None:
    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    assert {each.flag for each in PLAIN.values()} <= {flag for each in found.params for flag in each.opts}


def test_each_is_obeyed_and_handed_on_whole() -> None:
    assert {name for kind in kinds().values() for name in kind.settings} == set(SETTINGS)
    values: dict[str, Any] = {name: (each.choices or ("x",))[-1] for name, each in PLAIN.items()}
    for request in (
        Compile(snapshot="s", **values).wanted(),
        Backtest(filter="a", events="e", **values).filter_settings("sql"),
    ):
        assert {name: getattr(request, name) for name in PLAIN} == values
    of_records = FilterSettings(**values).of(kinds()["records"])
    assert of_records.said == NAMES


@pytest.mark.parametrize("name", [name for name, each in PLAIN.items() if each.choices])
def test_what_means_nothing_is_refused(name: str) -> None:
    given: Any = {name: "loud"}
    with pytest.raises(SubscriptionError, match=f"^{name} is 'loud': give '.*' or '.*', for "):
        FilterSettings(**given)
