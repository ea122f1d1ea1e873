"""Refusing a part of a filter, with its place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from headgate.errors import FilterError

if TYPE_CHECKING:
    from collections.abc import Iterator

_ADVICE: dict[type[exp.Expr], str] = {
    exp.RegexpLike: "RLIKE is not part of the filter language; LIKE is",
    exp.ILike: "ILIKE is not part of the filter language; LIKE is",
    # Before CAST, whose kind it is.
    exp.TryCast: "TRY_CAST is not part of the filter language; write the literal in the type you need",
    exp.Cast: "CAST is not part of the filter language; write the literal in the type you need",
    exp.Case: "CASE is not part of the filter language; AND and OR are",
    exp.Subquery: "a subquery is not part of the filter language",
    exp.Select: "a query is not part of the filter language: write only what stands after WHERE",
    exp.NullSafeNEQ: "IS DISTINCT FROM is not part of the filter language; write NOT (a <=> b)",
    exp.Literal: "a Boolean expression is expected here, not a literal",
    exp.Alias: "AS is not part of the filter language",
}


def refusal(reason: str, text: str, node: exp.Expr) -> FilterError:
    """Make the error for a node of sqlglot's tree; without a reason, say that the language lacks it."""
    start = min(_starts(node), default=None)
    if start is not None and isinstance(node, exp.Func | exp.Query):
        # These know the places of their parts only; their name stands before.
        name = str(node.this) if isinstance(node, exp.Anonymous) else _word(node)
        named = [found.start() for found in re.finditer(rf"\b{name}\b", text[:start], re.IGNORECASE)]
        start = named[-1] if named else start
    if start is None:
        # Some nodes of sqlglot know no place; their keyword in the text is the next best.
        found = text.lower().find(_word(node))
        start = found if found >= 0 else None
    if isinstance(node, exp.Binary) and not reason and type(node) not in _ADVICE:
        start, sign = _operator(text, node)
        return FilterError(f"{sign!r} is not part of the filter language here", text, start)
    return FilterError(reason or _lacking(node, text, start), text, start)


def _word(node: exp.Expr) -> str:
    if isinstance(node, exp.Cast):
        return "(?:try_)?cast"
    return node.sql_name().lower() if isinstance(node, exp.Func) else node.key


def _lacking(node: exp.Expr, text: str, start: int | None) -> str:
    for kind, advice in _ADVICE.items():
        if isinstance(node, kind):
            return advice
    if isinstance(node, exp.Func):
        # As written, because sqlglot gives some functions names of its own: size is array_size to it.
        written = re.match(r"\w+(?=\s*\()", text[start:]) or re.search(r"\w+(?=\s*\(\s*\Z)", text[:start])
        name = written[0].lower() if written else node.sql_name().lower()
        return (
            f"the function {name} is not part of the filter language; array_contains and arrays_overlap are"
        )
    return f"{node.key.upper()} is not part of the filter language here"


def _starts(node: exp.Expr) -> Iterator[int]:
    for part in node.walk():
        start = part.meta.get("start")
        if isinstance(start, int):
            yield start


def _operator(text: str, node: exp.Expr) -> tuple[int | None, str]:
    """Find the sign between the two sides of a binary node."""
    ends = [part.meta["end"] for part in node.this.walk() if "end" in part.meta] if node.this else []
    after = max(ends, default=-1) + 1
    while after < len(text) and (text[after].isspace() or text[after] == ")"):
        after += 1
    stop = after
    while (
        stop < len(text)
        and not text[stop].isspace()
        and not text[stop].isalnum()
        and text[stop] not in "'\"`(_"
    ):
        stop += 1
    if stop == after:
        while stop < len(text) and text[stop].isalpha():
            stop += 1
    return after, text[after:stop] or node.key
