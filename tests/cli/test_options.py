"""Options are the settings of a request: the same defaults and bounds as in programs and files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import pytest

from headgate.cli.options import options_of
from headgate.core.settings import SettingKind, settings_of, wrong
from headgate.pipeline.run.request import Run
from headgate.plan.settings import Plan
from headgate.stream.settings import StreamSettings
from headgate.tables.settings import Backtest, Compile, Match, WhatIf, Where
from headgate.workloads.settings import Generate

if TYPE_CHECKING:
    from headgate.core.settings import Setting

REQUESTS = (Where, Compile, Match, Backtest, WhatIf, Plan, Generate, StreamSettings, Run)
EVERYTHING = [(made, each) for made in REQUESTS for each in settings_of(made)]


def asked(made: type[Any], *arguments: str) -> Any:
    """Read arguments as a command does."""

    @click.command()
    @options_of(made)
    def command(request: object) -> object:
        return request

    return command.main(list(arguments), standalone_mode=False)


def needed(made: type[Any], besides: str = "") -> dict[str, str]:
    """Return a value for each setting that is required."""
    settings = [each for each in settings_of(made) if each.required and each.name != besides]
    return {each.name: each.choices[0] if each.choices else "x" for each in settings}


def written(made: type[Any], values: dict[str, str]) -> list[str]:
    """Write values as arguments."""
    return [
        word for each in settings_of(made) if each.name in values for word in (each.flag, values[each.name])
    ]


@pytest.mark.parametrize("made", REQUESTS)
def test_without_options_a_request_is_as_by_default(made: type[Any]) -> None:
    values = needed(made)
    assert asked(made, *written(made, values)) == made(**values)


@pytest.mark.parametrize(
    ("made", "setting"),
    [(made, each) for made, each in EVERYTHING if each.least is not None or each.choices],
    ids=lambda each: getattr(each, "name", None) or each.__name__,
)
def test_a_value_that_cannot_be_is_refused_as_in_files(made: type[Any], setting: Setting) -> None:
    value: Any = "qqqq" if setting.choices else (setting.least or 0) - 1
    pair = setting.kind is SettingKind.PAIR
    assert wrong(setting, [int(value), 2] if pair else value) is not None
    words = [str(int(value)), "2"] if pair else [str(value)]
    with pytest.raises(click.UsageError):
        asked(made, *written(made, needed(made, setting.name)), setting.flag, *words)


@pytest.mark.parametrize(
    ("made", "words", "name", "value"),
    [
        (StreamSettings, ["--every", "90s"], "every", 90.0),
        (StreamSettings, ["--window", "0"], "window", None),
        (StreamSettings, ["--option", "a=b=c", "--option", "d= e"], "options", {"a": "b=c", "d": "e"}),
        (WhatIf, ["--noise", "5%"], "noise", 0.05),
        (WhatIf, ["--no-cost"], "cost", False),
        (Match, ["--top", "3", "--mode", "relaxed", "--factor", "a=b=2"], "factors", {"a=b": 2.0}),
        (Compile, ["--no-ranked"], "ranked", False),
        (Compile, ["--taxonomy", "a.ttl", "--taxonomy", "b.nt"], "taxonomy", ("a.ttl", "b.nt")),
        (Generate, ["--kilobytes", "1", "3"], "kilobytes", (1, 3)),
        (Run, ["--set", "match.top=3"], "overrides", {"match.top": "3"}),
    ],
)
def test_values_are_read(made: type[Any], words: list[str], name: str, value: object) -> None:
    assert getattr(asked(made, *written(made, needed(made)), *words), name) == value


@pytest.mark.parametrize(
    ("made", "words", "told"),
    [
        (Match, ["--mode", "exact"], "--mode goes with --top"),
        (StreamSettings, ["--top", "3", "--factor", "a=1"], "--factor goes with --mode relaxed"),
        (Generate, ["--presence", "0.5"], "--presence goes with --attributes"),
        (WhatIf, ["--noise", "20"], "'20' is not a share: write 0.1 or 10%"),
        (StreamSettings, ["--every", "soon"], "'soon' is not a time: write 30, 90s, 10m, 2h or 1d"),
        (Where, ["--conf", "x"], "--conf x: write NAME=VALUE"),
        (Run, ["--set", "x"], "--set x: write TABLE.KEY=VALUE"),
    ],
)
def test_what_is_refused(made: type[Any], words: list[str], told: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        asked(made, *written(made, needed(made)), *words)
    assert told in caught.value.format_message()


def test_every_setting_has_words_for_all_places() -> None:
    for made, each in EVERYTHING:
        assert each.help, (made, each.name)
        # Help is a phrase: a full stop is added where it is shown.
        assert not each.help.endswith("."), (made, each.name)
        assert not each.more or each.more.endswith("."), (made, each.name)
