"""The page says what the report holds, escapes what it must, and stands with nothing to show."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from headgate.errors import HeadgateError, TableError
from headgate.report import page, pictures, words
from headgate.report.model import Busy, Histogram, Machine, Partition, RunReport, Step, quantile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MATCHES = Counter(np.random.default_rng(1).lognormal(3, 1, 4000).astype(int).tolist())
REPORT = RunReport(
    title="A demo & more",
    created=datetime(2026, 3, 2, 9, 30, tzinfo=UTC),
    subscriptions=123_456,
    rejected_subscriptions=12,
    events=4000,
    rejected_events=1,
    matches=sum(matches * events for matches, events in MATCHES.items()),
    matches_per_event=Histogram.of(MATCHES),
    quantiles=tuple((share, quantile(MATCHES, share)) for share in (0.5, 0.9, 0.99)),
    busiest=(Busy("campaign-7", "country = 'FR' AND age >= 18", 900), Busy("campaign-8", "age < 30", 400)),
    throughput=tuple(Partition(index, index // 2 * 0.5, 0.5, 500) for index in range(8)),
    steps=(Step("compile", 1.5), Step("match", 6.0)),
    machine=Machine("3.11.7", "4.3.0", "17.0.12", 2, 23.4, 0.25),
    command="headgate demo --events 4000",
    rejected_subscriptions_path="out/rejected_subscriptions",
    rejected_events_path="out/rejected_events",
)
NOTHING = replace(
    REPORT, subscriptions=0, rejected_subscriptions=0, events=0, rejected_events=0, matches=0,
    matches_per_event=Histogram.of({}), quantiles=(), busiest=(), throughput=(), steps=(),
    rejected_subscriptions_path=None, rejected_events_path=None,
)  # fmt: skip
VOID = {"meta", "br"}


class Reader(HTMLParser):
    """Collect the texts by tag, and check that tags nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", " ".join(data.split())))

    def of(self, tag: str) -> list[str]:
        return [text for where, text in self.texts if where == tag]


def test_the_page_shows_the_numbers() -> None:
    reader = Reader(page.render(REPORT))
    assert reader.of("h1") == ["A demo & more"]
    tiles = reader.of("dd")
    assert tiles[0::2] == ["123,456", "4,000", f"{REPORT.matches:,}", "2,000"]
    assert tiles[1::2] == [
        "12 rejected",
        "1 rejected",
        f"{REPORT.matches / 4000:.1f} an event",
        "2.0 s of matching",
    ]
    assert reader.tags["svg"] == 4
    assert len(reader.ids) == len(set(reader.ids))
    assert "country = 'FR' AND age >= 18" in reader.of("code")
    assert {"out/rejected_subscriptions", "out/rejected_events"} <= set(reader.of("code"))
    assert "12 subscriptions could not be used; each row and its reason is in" in reader.of("p")
    assert "1 event could not be used; each row and its reason is in" in reader.of("p")
    assert reader.of("pre") == ["headgate demo --events 4000"]
    assert any("2 cores, 23.4 GiB of memory, load 0.25" in text for text in reader.of("p"))


def test_the_captions_state_the_findings() -> None:
    median, high = (words.count(dict(REPORT.quantiles)[share]) for share in (0.5, 0.99))
    first, busy, rate, steps = Reader(page.render(REPORT)).of("figcaption")
    assert first.startswith(
        f"Half of the events match {median} subscriptions or fewer; the busiest 1 % match more than {high}."
    )
    assert busy.startswith(
        "The busiest subscription, campaign-7, matches 22 % of the events; the 2 shown take"
    )
    assert rate == "4,000 events in 2.0 s, in 8 batches: 2,000 events a second on average."
    assert steps == "The run took 7.5 s; the longest step, match, took 80 % of it."


def test_nothing_is_loaded_from_elsewhere() -> None:
    text = page.render(REPORT)
    assert not {"script", "link", "img", "iframe"} & set(Reader(text).tags)
    assert "@import" not in text


@pytest.mark.parametrize(
    "text",
    [
        "a = '<script>alert(1)</script>'",
        "a = '</svg><b>' AND b = \"&amp;\"",
        "price = '$5' OR price = '$_{6}$'",
        "name = '東京' OR name = 'עברית'",
        "a = '#1f7a8c' OR a = 'id=\"x\"' OR a = '*{url(#y)'",
        "a = 1\n\t AND b = '\x00\x08'",
        "a = '" + "x" * 5000 + "'",
        "W" * 300,
        "東" * 300,
    ],
)
def test_texts_of_users_are_shown_as_they_are(text: str) -> None:
    report = replace(
        REPORT,
        title=text,
        command=text,
        busiest=(Busy(text, text, 5),),
        steps=(Step(text, 1.0), Step("match", 2.0)),
        rejected_events_path=text,
    )
    reader = Reader(page.render(report))
    assert not {"script", "b"} & set(reader.tags)
    assert words.clean(text) in {words.clean(each) for each in reader.of("td")}
    assert words.clean(reader.of("h1")[0]) == words.clean(text)
    for draw in (pictures.busiest, pictures.steps):
        assert words.clean(text)[:19] in "".join(svg_texts(draw(report)))


@pytest.mark.parametrize(
    "draw", [pictures.matches_per_event, pictures.busiest, pictures.throughput, pictures.steps]
)
def test_pictures_are_xml_and_always_the_same(draw: Callable[[RunReport], str]) -> None:
    first = draw(REPORT)
    assert ET.fromstring(first).tag.endswith("svg")
    assert first == draw(REPORT)
    assert "var(--main, #1f7a8c)" in first


def test_pictures_label_what_they_show() -> None:
    assert "compile" in svg_texts(pictures.steps(REPORT))
    assert "6.0 s · 80 %" in svg_texts(pictures.steps(REPORT))
    assert "mean 2,000" in svg_texts(pictures.throughput(REPORT))
    assert {"0", "matching subscriptions"} <= set(svg_texts(pictures.matches_per_event(REPORT)))


@pytest.mark.parametrize(
    ("report", "drawn"),
    [
        (NOTHING, 0),
        (
            replace(
                REPORT,
                matches=0,
                matches_per_event=Histogram.of({0: 4000}),
                quantiles=((0.5, 0.0),),
                busiest=(),
            ),
            3,
        ),
        (replace(REPORT, steps=(Step("match", 2.0),)), 4),
        (replace(REPORT, steps=(Step("match", 0.0),)), 3),
        (replace(REPORT, throughput=(Partition(0, 0.0, 0.0, 10),)), 3),
        (replace(REPORT, throughput=(Partition(0, 0.0, 0.0, 10), Partition(1, 0.0, 1.0, 0))), 4),
        (replace(REPORT, matches_per_event=Histogram.of({7: 4000}), quantiles=()), 4),
    ],
    ids=["nothing", "no match", "one step", "no time", "instant", "idle", "all the same"],
)
def test_empty_parts_are_words(report: RunReport, drawn: int) -> None:
    reader = Reader(page.render(report))
    assert reader.tags["svg"] == drawn
    assert len(reader.of("figcaption")) == 4


def test_throughput_keeps_every_event() -> None:
    generator = np.random.default_rng(2)
    spans = generator.uniform(0, 5, (40, 2)).tolist()
    parts = tuple(Partition(index, start, seconds, 7 + index) for index, (start, seconds) in enumerate(spans))
    edges, rates = pictures.rates(replace(REPORT, throughput=parts))
    assert (rates * np.diff(edges)).sum() == pytest.approx(sum(part.events for part in parts))
    assert edges[0] == 0


def test_histograms_hold_every_event() -> None:
    histogram = Histogram.of(MATCHES)
    assert sum(histogram.counts) == 4000
    assert histogram.edges[:2] == (0, 1)
    assert histogram.edges[-1] == max(MATCHES) + 1
    assert len(histogram.counts) <= 33
    with pytest.raises(HeadgateError, match="rising edges"):
        Histogram((0, 1), (1, 2))
    with pytest.raises(HeadgateError, match="rising edges"):
        Histogram((0, 0), (1,))


def test_write_replaces_the_page_and_leaves_nothing_beside(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")
    page.write(REPORT, path)
    assert path.read_text(encoding="utf-8") == page.render(REPORT)
    assert list(tmp_path.iterdir()) == [path]


def test_a_page_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"cannot write the report to .*No such file or directory$"):
        page.write(REPORT, tmp_path / "missing" / "report.html")
    (tmp_path / "folder").mkdir()
    with pytest.raises(TableError, match="cannot write the report"):
        page.write(REPORT, tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def svg_texts(svg: str) -> list[str]:
    return [" ".join(each.itertext()) for each in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
