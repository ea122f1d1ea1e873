"""The page of a what-if says what would change, and stands with nothing to show."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from headgate.backtest.cost import Cost
from headgate.backtest.effects import Effect, WhatIf
from headgate.report import words
from headgate.report.runs import what_if_page
from headgate.report.runs import what_if_page as what_if_pictures
from headgate.report.runs.model import WhatIfPage
from tests.report.reading import Reader, svg_texts

if TYPE_CHECKING:
    from pathlib import Path


def changed(number: int, events: int = 1000) -> Effect:
    random = np.random.default_rng(number)
    before, after = (int(random.integers(0, events // (1 + number))) for _ in range(2))
    common = int(random.integers(0, min(before, after) + 1))
    return Effect(
        f"campaign-{number}", "replace", before, after, after - common, before - common, after / events,
        "noisy" if after > events / 10 else "", f"country = 'FR' AND age >= {number}",
    )  # fmt: skip


ROWS = tuple(sorted((changed(number) for number in range(12)), key=lambda each: -each.after))
DONE = WhatIf(
    events=1000,
    rejected_events=0,
    changes={"subscribe": 2, "replace": 12},
    rejected=3,
    gained=sum(each.gained for each in ROWS),
    lost=sum(each.lost for each in ROWS),
    effects=(
        Effect("all", "subscribe", 0, 1000, 1000, 0, 1.0, "noisy", "TRUE"),
        *ROWS,
        Effect("none", "subscribe", 0, 0, 0, 0, 0.0, "matches nothing", "age > 1000"),
    ),
    days=1.0,
    cost=Cost(1_000_000, 1_250_000, 12.5, 13.0, 1000, 0.4),
    seconds=1.0,
)
DAYS = (DONE.gained - DONE.lost) / -120.4
PAGE = WhatIfPage(
    title="What if: changes & more",
    created=datetime(2026, 3, 2, 9, 30, tzinfo=UTC),
    done=replace(DONE, days=DAYS),
    noise=0.1,
    rejected_path="diff-rejected.jsonl",
    command="headgate backtest --changes changes.jsonl",
)
NOTHING = replace(PAGE, done=WhatIf(0, 0, {}, 0, 0, 0, (), None, None, 0.0))


def of(*effects: Effect, **more: Any) -> WhatIfPage:
    """Return the page with other subscriptions."""
    return replace(PAGE, done=replace(PAGE.done, effects=effects), **more)


def test_the_page_shows_the_numbers() -> None:
    reader = Reader(what_if_page.render(PAGE))
    assert reader.of("h1") == ["What if: changes & more"]
    assert reader.of("dt") == [
        "changed subscriptions", "matches", "deliveries a day", "size of the snapshot", "time of an event",
    ]  # fmt: skip
    values = reader.of("dd")
    assert (values[0], values[1]) == ("14", "2 new, 12 replaced")
    assert (values[4], values[6], values[8]) == ("\N{MINUS SIGN}120", "+25 %", "+4.0 %")
    assert values[9] == "12.5 µs before, 13.0 after"
    assert reader.tags["svg"] == 4
    assert {"country = 'FR' AND age >= 3", "diff-rejected.jsonl", "TRUE"} <= set(reader.of("code"))
    assert any("3 of the changes and 0 of the events could not be used" in text for text in reader.of("p"))
    first, second = reader.of("figcaption")
    assert first.startswith(
        f"{words.count(PAGE.done.gained)} matches would be gained and {words.count(PAGE.done.lost)} lost"
    )
    assert "1 subscription would match nothing, and" in second
    assert not {"script", "link", "img"} & set(reader.tags)


def test_the_charts_name_what_they_show() -> None:
    texts = svg_texts(what_if_pictures.differences(PAGE).svg or "")
    assert {"all", "+1,000", "campaign-0"} <= set(texts)
    texts = svg_texts(what_if_pictures.noise(PAGE).svg or "")
    assert {"nothing", "share of the events", "more than 10 %: noisy"} <= set(texts)


def test_only_the_most_changed_are_drawn() -> None:
    many = of(*(replace(changed(number % 12), id=f"s{number}") for number in range(300)))
    chart = what_if_pictures.differences(many)
    assert f"the {what_if_pictures.SHOWN} with the most are shown" in chart.caption
    reader = Reader(what_if_page.render(many))
    assert any(text.endswith("200 more are in the table of effects.") for text in reader.of("p"))


def test_who_is_pushed_is_told_apart() -> None:
    best = of(replace(ROWS[0], op=""), *ROWS[1:], top=5)
    assert "among the best 5" in what_if_pictures.differences(best).caption
    assert "pushed" in Reader(what_if_page.render(best)).of("td")


@pytest.mark.parametrize(
    "page",
    [NOTHING, replace(NOTHING, done=replace(NOTHING.done, events=5, cost=Cost(0, 5, None, None, 0, 0.0)))],
)
def test_nothing_to_show_is_words(page: WhatIfPage) -> None:
    reader = Reader(what_if_page.render(page))
    assert reader.tags["svg"] == 0
    assert reader.of("figcaption") == ["No matches would come or go.", "There is nothing to be noisy."]


@pytest.mark.parametrize("text", ["<script>x</script>", "$5 </svg> & \"'", "W" * 400, "a\x00\n東"])
def test_texts_of_users_are_shown_as_they_are(text: str, tmp_path: Path) -> None:
    page = of(replace(ROWS[0], id=text, filter=text), title=text, command=text)
    what_if_page.write(page, tmp_path / "page.html")
    reader = Reader((tmp_path / "page.html").read_text("utf-8"))
    assert not {"script"} & set(reader.tags)
    assert words.clean(text) in {words.clean(each) for each in reader.of("td")}
    for chart in what_if_pictures.charts(page):
        ET.fromstring(chart.svg or "")
