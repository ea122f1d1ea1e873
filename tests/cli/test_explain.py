"""`headgate explain`: the texts that people read."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headgate import Engine, Subscription
from headgate.records.index.index import RecordIndex

if TYPE_CHECKING:
    from tests.cli.running import Command


@pytest.mark.parametrize(
    ("text", "event", "said"),
    [
        (
            "age > 30 AND topic = 'news'",
            '{"age": 35, "topic": "sport"}',
            [
                "no match",
                "  held    age > 30         age = 35",
                "  failed  topic = 'news'   topic = \"sport\"",
                "nearest miss: topic = 'news'",
                "indexed by topic and age: age > 30, topic = 'news'",
            ],
        ),
        (
            "age > 30 AND topic = 'news'",
            '{"age": 35, "topic": "news"}',
            [
                "match",
                "  held    age > 30         age = 35",
                "  held    topic = 'news'   topic = \"news\"",
                "indexed by topic and age: age > 30, topic = 'news'",
            ],
        ),
        (
            "age > 30",
            '{"age": 28}',
            [
                "no match",
                "  failed  age > 30   age = 28 (off by 2)",
                "nearest miss: age > 30",
                "indexed by age: age > 30",
            ],
        ),
        (
            "age > 30",
            "{}",
            [
                "no match",
                "  unknown age > 30   age = NULL (the event has no such attribute)",
                "nearest miss: age > 30",
                "indexed by age: age > 30",
            ],
        ),
        (
            "user.name = 'é'",
            '{"user": {"name": null}}',
            [
                "no match",
                "  unknown user.name = 'é'   user.name = NULL (the attribute is NULL)",
                "nearest miss: user.name = 'é'",
                "indexed by user.name: user.name = 'é'",
            ],
        ),
        (
            "TRUE",
            "{}",
            [
                "match",
                "  held    TRUE",
                "indexed by nothing: it is checked for every event",
                "note: it matches every event",
            ],
        ),
        (
            "FALSE",
            '{"age": 1}',
            [
                "no match",
                "  failed  FALSE",
                "nearest miss: none, no event can match this filter",
                "note: it can never match",
            ],
        ),
        (
            "length(topic) * 2 > 6 AND topic LIKE '%ew%'",
            '{"topic": "news"}',
            [
                "match",
                "  held    (length(topic) * 2) > 6   length(topic) * 2 = 8",
                "  held    topic LIKE '%ew%'         topic = \"news\"",
                "indexed by length(topic) * 2: (length(topic) * 2) > 6",
                "verified: topic LIKE '%ew%'",
                "computed once an event: length(topic) * 2",
            ],
        ),
        (
            "age > 50 OR (age > 40 AND topic = 'x')",
            '{"age": 45, "topic": "y"}',
            [
                "no match",
                "  failed  age > 50      age = 45 (off by 5)",
                "  held    age > 40      age = 45",
                "  failed  topic = 'x'   topic = \"y\"",
                "nearest miss: age > 50",
                "indexed by age or topic and age: age > 50, age > 40, topic = 'x'",
            ],
        ),
    ],
    ids=["no match", "match", "number", "missing", "null", "true", "false", "computed", "or"],
)
def test_the_text(headgate: Command, text: str, event: str, said: list[str]) -> None:
    ran = headgate("explain", "--filter", text, "--event", event)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == said
    found = headgate("explain", "--filter", text, "--event", event, "--json").json
    assert found["matches"] is (said[0] == "match")
    assert len(found["clauses"]) == sum(line.startswith("  ") for line in said)
    index = {"indexed_by", "indexed", "verified", "costs", "notes"}
    assert set(found) == {"matches", "filter", "clauses", "nearest_miss"} | index


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (b'{"age": 35}\n', 0, "match"),
        (b"", 1, "not valid JSON"),
        (b'{"age": "\xff"}', 1, "not valid JSON: 'utf-8' codec can't decode byte 0xff"),
    ],
    ids=["event", "nothing", "bytes"],
)
def test_standard_input(
    headgate: Command, monkeypatch: pytest.MonkeyPatch, given: bytes, code: int, said: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    ran = headgate("explain", "--filter", "age > 30", "--event", "-")
    assert ran.code == code
    assert said in (ran.complaint if code else ran.out)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--filter", "//a", "--dialect", "xpath", "--event", f"<a>{'x' * 600}</a>"), 0, "match"),
        (("--filter", "a = 1", "--event", "x" * 600), 1, "not valid JSON"),
        (
            ("--snapshot", "mixed", "--subscription", "s1", "--event", '{"a": 1, "b": "%s"}' % ("x" * 600)),
            0,
            "match",
        ),
    ],
    ids=["document", "text", "several contents"],
)
def test_events_longer_than_names_of_files(
    headgate: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Engine.build([Subscription("s1", "a = 1"), Subscription("s2", "//a", "xpath")]).save(Path("mixed"))
    ran = headgate("explain", *words)
    assert ran.code == code, ran.err
    assert said in (ran.complaint if code else ran.out)


@pytest.mark.parametrize(
    ("ids", "given", "reason"),
    [
        ([5, -7], "5", None),
        ([5, -7], "-7", None),
        ([5, -7], "6", "there is no subscription 6 here"),
        ([5, -7], "5.0", "there is no subscription '5.0' here: the ids of this snapshot are whole numbers"),
        ([5, -7], "--5", "there is no subscription '--5' here"),
        ([5, -7], "²", "there is no subscription '²' here"),
        ([5, -7], str(2**70), f"there is no subscription {2**70} here"),
        (["5", "x"], "5", None),
        (["5", "x"], "x", None),
        (["5", "x"], "y", "there is no subscription 'y' here"),
        ([], "5", "there is no subscription '5' here"),
    ],
)
def test_a_subscription_of_a_snapshot(
    headgate: Command, tmp_path: Path, ids: list[str | int], given: str, reason: str | None
) -> None:
    RecordIndex.build(Subscription(identity, "age > 30") for identity in ids).save(tmp_path / "snapshot")
    ran = headgate(
        "explain", "--snapshot", tmp_path / "snapshot", f"--subscription={given}", "--event", '{"age": 35}'
    )
    if reason is None:
        assert (ran.code, ran.out.splitlines()[0]) == (0, "match")
    else:
        assert ran.code == 1
        assert reason in ran.complaint


def test_a_long_number_is_not_the_end(headgate: Command, tmp_path: Path) -> None:
    RecordIndex.build([Subscription(1, "TRUE")]).save(tmp_path / "snapshot")
    snapshot = ("--snapshot", tmp_path / "snapshot")
    ran = headgate("explain", *snapshot, "--subscription", "9" * 5000, "--event", "{}")
    assert ran.code == 1
    assert ran.complaint.startswith("there is no subscription")
    ran = headgate("explain", "--filter", "a = 1", "--event", f'{{"a": {"9" * 5000}}}')
    assert ran.code == 1


@pytest.fixture
def news(tmp_path: Path) -> Path:
    """A snapshot of a few subscriptions."""
    filters = {
        "adults": "age >= 18",
        "headlines": "topic IN ('news', 'politics') AND lang = 'en'",
        "music": "town = 'Bern' AND array_contains(tags, 'music')",
        "never": "age = NULL",
        "wide": "topic LIKE 'n%'",
    }
    index = RecordIndex.build(Subscription(identity, text) for identity, text in filters.items())
    index.save(tmp_path / "snapshot")
    return tmp_path / "snapshot"


EVENT = '{"age": 12, "topic": "news", "lang": "de", "tags": ["art"]}'


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            "",
            [
                "adults: 1 clause failed",
                "  failed  age >= 18   age = 12 (off by 6)",
                "headlines: 1 clause failed",
                "  failed  lang = 'en'   lang = \"de\"",
                "music: 2 clauses failed",
                "  unknown town = 'Bern'                   town = NULL (the event has no such attribute)",
                "  failed  array_contains(tags, 'music')   tags = [\"art\"] (no element is equal)",
            ],
        ),
        ("--limit 1", ["adults: 1 clause failed", "  failed  age >= 18   age = 12 (off by 6)"]),
        (
            "--within 1",
            [
                "adults: 1 clause failed",
                "  failed  age >= 18   age = 12 (off by 6)",
                "headlines: 1 clause failed",
                "  failed  lang = 'en'   lang = \"de\"",
            ],
        ),
    ],
    ids=["all", "limit", "within"],
)
def test_near_misses(headgate: Command, news: Path, options: str, said: list[str]) -> None:
    near: tuple[str | Path, ...] = (
        "explain",
        "--why-not",
        "--snapshot",
        news,
        "--event",
        EVENT,
        "--quiet",
        *options.split(),
    )
    ran = headgate(*near)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == said
    misses = headgate(*near, "--json").json["near_misses"]
    assert [f"{miss['id']}:" for miss in misses] == [line.split()[0] for line in said if "  " not in line]
    assert all(set(miss) == {"id", "filter", "failed", "clauses"} for miss in misses)
    assert all(miss["failed"] == len(miss["clauses"]) for miss in misses)


def test_no_near_miss(headgate: Command, tmp_path: Path) -> None:
    RecordIndex.build([Subscription(1, "TRUE"), Subscription(2, "a AND b")]).save(tmp_path / "s")
    near: tuple[str | Path, ...] = ("explain", "--why-not", "--snapshot", tmp_path / "s", "--event")
    assert headgate(*near, '{"a": true, "b": true}').out == "no subscription nearly matched\n"
    said = "no subscription nearly matched with at most 1 failed clause\n"
    assert headgate(*near, "{}", "--within", "1").out == said
    assert headgate(*near, "{}", "--within", "1", "--json").json == {"near_misses": []}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--why-not", "or --snapshot and --why-not"),
        ("--why-not --filter TRUE", "or --snapshot and --why-not"),
        ("--why-not --snapshot s --filter TRUE", "or --snapshot and --why-not"),
        ("--why-not --snapshot s --subscription 1", "or --snapshot and --why-not"),
        ("--filter TRUE --limit 5", "--limit and --within go with --why-not"),
        ("--snapshot s --subscription 1 --within 5", "--limit and --within go with --why-not"),
        ("--why-not --snapshot s --limit 0", "is not in the range"),
        ("--why-not --snapshot s --within x", "is not a valid integer"),
    ],
)
def test_wrong_combinations(headgate: Command, options: str, said: str) -> None:
    ran = headgate("explain", "--event", "{}", *options.split())
    assert ran.code == 2
    assert said in ran.complaint
