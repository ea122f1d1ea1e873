"""Addresses: what they say, what is refused, and that nothing secret is ever shown."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.brokers.nats.settings import NatsSettings, Template, covers, overlap, shown, token
from headgate.errors import TableError
from headgate.stream.settings import StreamSettings
from headgate.stream.sources.nats import Nats

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
TOKENS = st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=4)
PATTERNS = st.builds(lambda tokens, rest: ".".join(tokens + [">"] * rest), TOKENS, st.integers(0, 1))
SUBJECTS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5).map(".".join)


def test_an_address_says_everything() -> None:
    said = NatsSettings.of(
        "nats://ann:p%40ss@one:4222,[::1]:5222,three/EVENTS?subject=a.>&tls=yes&max_rows=7&patience=2.5&start=12"
    )
    assert said.servers == ("one:4222", "[::1]:5222", "three:4222")
    assert (said.stream, said.subject, said.user, said.password) == ("EVENTS", "a.>", "ann", "p@ss")
    assert (said.tls, said.max_rows, said.patience, said.start) == (True, 7, 2.5, "12")
    assert said.place == "nats://one:4222,[::1]:5222,three:4222/EVENTS"
    assert "p@ss" not in repr(said)
    assert "ann" not in repr(said)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://h/S", "begins with nats://"),
        ("nats://h", "names a stream after the servers"),
        ("nats://u:pw@h/a.b", "'a.b' is none"),
        ("nats:///S", "a NATS server is host:port, as localhost:4222, not ''"),
        ("nats://u:pw@h:x/S", "a NATS server is host:port"),
        ("nats://u:pw@h/S?max_row=2", "no setting 'max_row' for NATS: known are subject, user"),
        ("nats://u:pw@h/S?max_rows=many", "max_rows is a whole number, not 'many'"),
        ("nats://u:pw@h/S?max_rows=0", "max_rows is at least 1, not 0"),
        ("nats://u:pw@h/S?patience=x", "patience is a number, not 'x'"),
        ("nats://u:pw@h/S?tls=maybe", "tls is yes or no, not 'maybe'"),
        ("nats://u:pw@h/S?subject=a b", "a subject has no blanks"),
        ("nats://u:pw@h/S?subject", "'subject' has no value"),
        ("nats://u:pw@h/S?on_loss=weep", "on_loss is fail or go-on, not 'weep'"),
        ("nats://u:pw@h/S?start=now", "start is first, new or a sequence number, not 'now'"),
        ("nats://u:pw@h/S?cert=a", "cert and key go together"),
        ("nats://u:pw?x@h/S", "has no @ behind the first ?: write %40 for an @ in a setting, and %3F"),
        ("nats://u:pw?x@h", "has no @ behind the first ?"),
        ("nats://u:1/pw?pw@h/S", "has no @ behind the first ?"),
        ("nats://u:x@pw?x=pw@h/S", "has no @ behind the first ?"),
        ("nats://h/S?password=x&pw", "has no known name=value behind its password or token: write %26"),
        ("nats://h/S?token=x&pw=pw&tls=yes", "has no known name=value behind its password or token"),
        ("nats://h/S?password=x&max_row=2&tls", "has no known name=value behind its password or token"),
    ],
)
def test_a_wrong_address_is_told(address: str, words: str) -> None:
    with pytest.raises(TableError) as caught:
        NatsSettings.of(address)
    assert words in str(caught.value)
    assert "pw" not in str(caught.value)


@given(TEXTS, st.sampled_from(["@h/S", "@h", "@h/S?tls=yes", "@h/S?subject=a@b"]))
def test_nothing_before_the_at_is_ever_shown(password: str, rest: str) -> None:
    address = f"nats://u:QQ{password}QQ{rest}"
    assert "QQ" not in shown(address)
    said = ""
    try:
        NatsSettings.of(address)
    except TableError as error:
        said = str(error)
    assert "QQ" not in said


def test_options_hold_for_every_address() -> None:
    options = {"nats.user": "ann", "nats.tls": "yes", "kafka.x": "y"}
    places = ("nats://h/E?tls=no", "nats://bob@h/M", "nats://h/C")
    settings = StreamSettings("", places[0], places[1], "", changes=places[2], max_rows=9, options=options)
    events, matches, changes = (
        Nats().events(settings),
        Nats().read(settings, settings.output),
        Nats().read(settings, settings.changes),
    )
    assert [(one.user, one.tls) for one in (events, matches, changes)] == [
        ("ann", False),
        ("bob", True),
        ("ann", True),
    ]
    assert (events.max_rows, matches.max_rows) == (9, 50_000)


def test_a_password_can_be_in_a_file(tmp_path: object) -> None:
    from pathlib import Path

    file = Path(str(tmp_path)) / "password"
    file.write_text("pa55word\n", "utf-8")
    said = NatsSettings.of(f"nats://ann@h/S?password_file={file}")
    assert said.secret == "pa55word"
    with pytest.raises(TableError, match="password_file nowhere: No such file"):
        _ = NatsSettings.of("nats://ann@h/S?password_file=nowhere").secret


def fits(pattern: str, subject: str) -> bool:
    """Say what the words of NATS say, token by token."""
    ours, theirs = pattern.split("."), subject.split(".")
    if ours[-1] == ">":
        return len(theirs) >= len(ours) and fits(
            ".".join(ours[:-1] or ["*"]), ".".join(theirs[: len(ours) - 1] or ["x"])
        )
    return len(ours) == len(theirs) and all(a in {"*", b} for a, b in zip(ours, theirs, strict=True))


@given(PATTERNS, PATTERNS, st.lists(SUBJECTS, max_size=20))
def test_patterns_cover_and_overlap(left: str, right: str, subjects: list[str]) -> None:
    for subject in subjects:
        if fits(left, subject) and fits(right, subject):
            assert overlap(left, right)
        if covers(left, right) and fits(right, subject):
            assert fits(left, subject)
    if covers(left, right):
        assert overlap(left, right)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.text(max_size=3))
def test_tokens_are_safe_and_tell_texts_apart(one: str, more: str) -> None:
    safe = set(string.ascii_letters + string.digits + "-_=@:+~%")
    assert set(token(one)) <= safe
    if more.isascii() and more:
        assert token(one) != token(one + more)


def test_a_template_is_filled() -> None:
    template = Template("m.{a}.x-{b}-{a}", "")
    assert template.fields == ("a", "b")
    assert template.pattern == "m.*.*"
    assert template.fill({"a": "1.2", "b": None}) == "m.1%2E2.x-%-1%2E2"
