"""The style sheet that all pages share: small, the same dark twice, readable in both themes."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

SHEET = (files("headgate.report") / "style.css").read_text("utf-8")
GROUNDS = ("--ground", "--panel", "--sunken")


def _tokens(selector: str) -> dict[str, str]:
    found = re.search(re.escape(selector) + r" \{\n(.*?)\}", SHEET, re.DOTALL)
    assert found, selector
    return dict(re.findall(r"(--[\w-]+): ([^;]+);", found[1]))


LIGHT, DARK = _tokens("\n:root"), _tokens(':root[data-theme="dark"]')


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_it_is_small_and_asks_for_nothing() -> None:
    assert len(SHEET.encode()) < 12 * 1024
    assert not re.search(r"@import|url\(|https?:", SHEET)


def test_both_ways_into_the_dark_are_the_same() -> None:
    assert _tokens(':root:not([data-theme="light"])') == DARK
    assert DARK.keys() == {name for name, value in LIGHT.items() if name in DARK}


def test_every_token_is_named_at_the_top() -> None:
    top = SHEET[: SHEET.index("*/")]
    named = {name for name in LIGHT if name in top or re.fullmatch(r"--(series|space)-\d", name)}
    assert named == set(LIGHT)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_and_borders_have_the_contrast_of_wcag_aa(theme: dict[str, str]) -> None:
    pairs = [(text, ground) for text in ("--ink", "--ink-soft", "--accent") for ground in GROUNDS]
    for name in ("--good", "--bad", "--warn"):
        pairs += [(name, ground) for ground in (*GROUNDS, f"{name}-soft")]
        pairs += [("--ink", f"{name}-soft")]
    pairs += [("--on-accent", "--accent"), ("--ink", "--accent-soft"), ("--series-3", "--panel")]
    low = {pair: _contrast(theme[pair[0]], theme[pair[1]]) for pair in pairs}
    assert {pair: found for pair, found in low.items() if found < 4.5} == {}
    drawn = [("--line-strong", ground) for ground in GROUNDS[:2]]
    drawn += [(f"--series-{number}", "--panel") for number in (1, 3, 4)]
    assert [pair for pair in drawn if _contrast(theme[pair[0]], theme[pair[1]]) < 3] == []
