"""Texts that are almost filters: tokens of the language in no good order, and filters with a word changed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.records.random_filters import random_filter

if TYPE_CHECKING:
    import random

NAMES = ["i", "Big", "f", "s", "b", "t", "whole", "ints", "tags", "user.age", "user", "`User`.`first name`"]
LITERALS = [
    "0",
    "5",
    "-3",
    "+1",
    "- 7",
    "(2)",
    "1.0",
    "2.5",
    ".5",
    "7.",
    "1e0",
    "-15e-1",
    "5L",
    "1D",
    "2BD",
    "TRUE",
    "false",
    "NULL",
    "'news'",
    '"abc"',
    "''",
    "r'a_b'",
    "'5'",
    "DATE '2024-01-01'",
    "TIMESTAMP '2024-01-01 00:00:00'",
    "array(1, 2)",
    "array('a')",
]
WORDS = [
    "AND",
    "OR",
    "NOT",
    "!",
    "IS",
    "IN",
    "LIKE",
    "BETWEEN",
    "ESCAPE",
    "IS NULL",
    "IS NOT NULL",
    "and",
    "or",
]
SIGNS = ["=", "==", "!=", "<>", "<", "<=", ">", ">=", "<=>", "(", ")", ",", "(", ")", ".", "-", "+"]
FUNCTIONS = ["array_contains(", "arrays_overlap(", "array("]
GAPS = [" ", " ", " ", " ", "  ", "\n", "\t", "/* c */", " -- c\n", ""]
FOREIGN = [
    "ISNULL",
    "RLIKE",
    "DIV",
    "AS",
    "CASE",
    "x",
    "DISTINCT",
    "UNKNOWN",
    "%",
    "*",
    ";",
    "[",
    "]",
    ":",
    "@",
]

_TOKEN = re.compile(r"r?'(?:\\.|[^'\\])*'|\"[^\"]*\"|`[^`]*`|[A-Za-z_]\w*|[0-9.]+\w*|<=>|<=|>=|<>|!=|==|\S")


def random_soup(rng: random.Random) -> str:
    """Draw tokens in any order; few are filters."""
    pools = [NAMES, NAMES, LITERALS, LITERALS, WORDS, SIGNS, SIGNS, FUNCTIONS]
    if rng.random() < 0.2:
        pools.append(FOREIGN)
    tokens = [rng.choice(rng.choice(pools)) for _ in range(rng.choice([1, 2, 3, 4, 5, 7, 10]))]
    return _join(rng, tokens)


def changed_filter(rng: random.Random) -> str:
    """Draw a filter and change a token or two: many are still filters, of another shape."""
    tokens = _TOKEN.findall(random_filter(rng, depth=rng.choice([0, 1, 1, 2])))
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        place = rng.randrange(len(tokens) + 1)
        other = rng.choice(rng.choice([NAMES, LITERALS, WORDS, WORDS, SIGNS]))
        change = rng.random()
        if change < 0.35:
            tokens.insert(place, other)
        elif change < 0.6:
            tokens[place : place + 1] = []
        elif change < 0.85:
            tokens[place : place + 1] = [other]
        else:
            # Take a pair of parentheses away, so that precedence decides.
            tokens = [token for token in tokens if token not in {"(", ")"}] or ["b"]
    return _join(rng, tokens)


def chained(rng: random.Random) -> str:
    """Draw comparisons without parentheses, where NOT, IS, IN, BETWEEN and signs fight for operands."""
    tails = [
        "= 5",
        "> 1",
        "<=> NULL",
        "IS NULL",
        "IS NOT NULL",
        "IN (1, 5)",
        "NOT IN (1)",
        "BETWEEN 1 AND 7",
        "NOT BETWEEN 2 AND 3",
        "LIKE '5%'",
        "NOT LIKE '_'",
        "= TRUE",
    ]
    text = rng.choice(["", "NOT ", "! ", "NOT NOT "]) + rng.choice(
        ["i", "b", "s", "5", "TRUE", "-3", "user.age"]
    )
    for _ in range(rng.choice([1, 1, 2, 3])):
        text += " " + rng.choice(tails)
        if rng.random() < 0.5:
            text += rng.choice([" AND ", " OR ", " AND NOT ", " = ", " OR ! "]) + rng.choice(
                ["i", "b", "5", "NULL"]
            )
    return text


def _join(rng: random.Random, tokens: list[str]) -> str:
    text = ""
    for token in tokens:
        gap = rng.choice(GAPS)
        glued = text[-1:].isalnum() and token[:1].isalnum()
        text += (gap or " " if glued else gap) + token
    return text
