"""Refusing a filter, with the place: a part of it that the language lacks, or the text as a whole.

Before the parser sees a text, its size is looked at, its nesting, and what stands between words. Limits keep
one subscriber from hurting the others: a filter is parsed in milliseconds, and no nesting exhausts a stack.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from headgate.core.likeliest import likeliest
from headgate.errors import FilterError
from headgate.records.language.neighbours import check_neighbours

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlglot.tokenizer_core import Token


_ADVICE: dict[type[exp.Expr], str] = {
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
        return f"the function {name} is not part of the filter language{_instead(name)}"
    return f"{node.key.upper()} is not part of the filter language here"


_LIKE = {"startswith": "x%", "starts_with": "x%", "endswith": "%x", "ends_with": "%x"}
"""What LIKE says as well, by the name of a function."""


def _instead(name: str) -> str:
    """Say what there is instead of a function."""
    meant = likeliest(name, ("array_contains", "arrays_overlap", "forall", *_LIKE))
    if meant in _LIKE:
        return f"; LIKE '{_LIKE[meant]}' is"
    return f" (did you mean {meant}?)" if meant else "; array_contains and arrays_overlap are"


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


MAX_CHARACTERS = 262_144
MAX_DEPTH = 64
"""Open parentheses and runs of NOT or signs, together."""
MAX_LIST = 10_000
"""Commas between two parentheses, plus one."""
MAX_CLAUSES = 10_000
"""Occurrences of AND and OR, plus one."""
MAX_NAME_PARTS = 32
"""Names between dots."""
MAX_OPEN = 256
"""Words and signs since the last AND, OR or comma, those around open parentheses included.

A clause needs about 200 at most. Beyond that a text nests something else than parentheses, such as
`ARRAY<ARRAY<…` or `a = NOT a = NOT …`, and would take the parser's stack, and the process, with it.
"""

_SIGNS = {
    TokenType.L_PAREN,
    TokenType.R_PAREN,
    TokenType.COMMA,
    TokenType.DOT,
    TokenType.EQ,
    TokenType.NEQ,
    TokenType.LT,
    TokenType.LTE,
    TokenType.GT,
    TokenType.GTE,
    TokenType.NULLSAFE_EQ,
    TokenType.DASH,
    TokenType.PLUS,
    TokenType.NOT,
}
_PREFIX = {TokenType.NOT, TokenType.DASH, TokenType.PLUS}
_BREAKS = {TokenType.AND, TokenType.OR, TokenType.COMMA}
_WORD = re.compile(r"\w+\Z", re.ASCII)
_TEXTS = {TokenType.STRING, TokenType.RAW_STRING}
_OTHER_TEXTS = {
    TokenType.NATIONAL_STRING: "N'…'",
    TokenType.HEX_STRING: "a hexadecimal literal",
    TokenType.BIT_STRING: "a binary literal",
    TokenType.BYTE_STRING: "a byte string",
    TokenType.UNICODE_STRING: "U&'…'",
    TokenType.HEREDOC_STRING: "$$…$$",
}
_BEFORE_ITEM = {TokenType.L_PAREN, TokenType.COMMA}
_JOINS = {TokenType.AND, TokenType.OR}
# Named once: looking a member up in an enumeration takes as long as a call.
_COMMA = TokenType.COMMA
_DCOLON = TokenType.DCOLON
_DOT = TokenType.DOT
_L_PAREN = TokenType.L_PAREN
_NOT = TokenType.NOT
_NUMBER = TokenType.NUMBER
_R_PAREN = TokenType.R_PAREN
_VAR = TokenType.VAR


def check_text(text: str) -> None:
    """Refuse a text for its size or its encoding, before anything reads it."""
    if len(text) > MAX_CHARACTERS:
        raise FilterError(
            f"the filter has {len(text):,} characters and at most {MAX_CHARACTERS:,} are taken", text, None
        )
    if not text.strip():
        raise FilterError("the filter is empty: write TRUE to match every event", text, None)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise FilterError(
            "the filter holds a lone surrogate, which UTF-8 cannot carry", text, error.start
        ) from None


def check_tokens(tokens: Sequence[Token], text: str) -> None:
    """Refuse signs that the language lacks, and too much of what it has."""
    check_gaps(tokens, text)
    depth = run = clauses = dots = width = 0
    commas = [0]
    # How wide the clauses around the open parentheses were when these opened.
    around = [0]
    previous: Token | None = None
    before: Token | None = None
    for token in tokens:
        kind = token.token_type
        run = run + 1 if kind in _PREFIX else 0
        width = around[-1] if kind in _BREAKS else width + 1
        if width > MAX_OPEN:
            raise FilterError("this clause never ends", text, token.start)
        if kind is _L_PAREN:
            depth += 1
            commas.append(0)
            around.append(width)
        elif kind is _R_PAREN:
            depth -= 1
            if depth < 0:
                raise FilterError("this parenthesis was never opened", text, token.start)
            commas.pop()
            width = around.pop()
            if previous is not None and previous.token_type is _COMMA:
                raise FilterError("a literal is missing after this comma", text, previous.start)
        elif kind is _COMMA:
            if previous is None or previous.token_type in _BEFORE_ITEM:
                raise FilterError("a literal is missing before this comma", text, token.start)
            commas[-1] += 1
            if commas[-1] >= MAX_LIST:
                raise FilterError(f"the list is longer than {MAX_LIST:,}", text, token.start)
        elif kind in _JOINS:
            clauses += 1
            if clauses >= MAX_CLAUSES:
                raise FilterError(f"the filter has more than {MAX_CLAUSES:,} clauses", text, token.start)
        if depth + run > MAX_DEPTH:
            raise FilterError(f"the filter nests deeper than {MAX_DEPTH}", text, token.start)
        dots = dots + 1 if kind is _DOT else (dots if previous and previous.token_type is _DOT else 0)
        if dots >= MAX_NAME_PARTS:
            raise FilterError(f"the name has more than {MAX_NAME_PARTS} parts", text, token.start)
        _check_sign(token, previous, text)
        check_neighbours(token, previous, before, text)
        previous, before = token, previous
    if depth > 0:
        raise FilterError("a parenthesis is still open at the end", text, len(text))


_INSTEAD = {
    "=>": ": write >=",
    "=<": ": write <=",
    "&&": ": write AND",
    "||": ": write OR",
    ";": ": leave it out",
}
"""What is written for signs of other languages."""


def _check_sign(token: Token, previous: Token | None, text: str) -> None:
    kind = token.token_type
    written = text[token.start : token.end + 1]
    if kind in _OTHER_TEXTS:
        raise FilterError(
            f"{_OTHER_TEXTS[kind]} is not part of the filter language: write '…'", text, token.start
        )
    if kind in _TEXTS and previous is not None and previous.token_type in _TEXTS:
        raise FilterError(
            "two strings stand side by side: write one, with \\' for a quote in it", text, token.start
        )
    if kind is _VAR and not written.isprintable():
        raise FilterError(f"{written!r} is not part of the filter language", text, token.start)
    if kind is _VAR and not _WORD.match(written):
        raise FilterError(f"the name {written} needs backticks: `{written}`", text, token.start)
    # Some words of the tokenizer are two, such as DOUBLE PRECISION, which the parser takes for a name.
    if written[:1].isalpha() and kind not in _TEXTS and not _WORD.match(written):
        raise FilterError(f"{written.upper()} is not part of the filter language", text, token.start)
    if written.lower() == "if":
        raise FilterError(
            "IF is not part of the filter language; an attribute of that name is `if`", text, token.start
        )
    # The tokenizer splits 5L into 5, :: and L, all three at the same place; a written :: is a cast.
    if kind is _DCOLON and written != "::":
        return
    symbol = not (written[:1].isalnum() or written[:1] in "_`'\"")
    if symbol and kind not in _SIGNS and kind is not _NUMBER:
        hint = _INSTEAD.get(written, "")
        if written == "*" and text.lstrip()[:6].upper() == "SELECT":
            hint = ": write only what stands after WHERE"
        elif written == "%" and "like" in text[: token.start].lower():
            hint = ": a pattern stands in quotes, as in LIKE 'a%'"
        raise FilterError(f"{written!r} is not part of the filter language{hint}", text, token.start)
    if symbol and kind is _NOT and written != "!":
        raise FilterError(f"{written!r} is not part of the filter language", text, token.start)


_BLANKS = " \t\n\r\x0b\x0c\xa0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000"
# A text without any of these has nothing but blanks between its words.
_UNUSUAL = re.compile(rf"--|/\*|\{{#|(?![{_BLANKS}])[\s\x00-\x1f\x7f]")
_BLANK = re.compile(f"[{_BLANKS}]+")
_LINE = re.compile(r"--[^\r\n]*")
# A hint does not open a comment, not even inside one.
_MARK = re.compile(r"/\*(?!\+)|\*/")


def check_gaps(tokens: Sequence[Token], text: str) -> None:
    """Refuse what is neither blank nor a comment of Spark's between the tokens."""
    if not _UNUSUAL.search(text):
        return
    place = 0
    for token in tokens:
        _check_gap(text, place, token.start)
        place = max(place, token.end + 1)
    _check_gap(text, place, len(text))


def _check_gap(text: str, place: int, stop: int) -> None:
    while place < stop:
        if found := _BLANK.match(text, place, stop):
            place = found.end()
        elif found := _LINE.match(text, place, stop):
            place = found.end()
            if text[place - 1] == "\\" and text[place : place + 1] == "\n":
                reason = "a comment ends with a backslash, and Spark would go on with it in the next line"
                raise FilterError(reason, text, place - 1)
        elif text.startswith("/*+", place):
            raise FilterError("a hint is not part of the filter language: write /* … */", text, place)
        elif text.startswith("/*", place):
            place = _after_comment(text, place, stop)
        else:
            raise FilterError(f"{text[place]!r} is not part of the filter language", text, place)


def _after_comment(text: str, start: int, stop: int) -> int:
    """Find the end of a bracketed comment, with those inside it."""
    depth = 0
    for mark in _MARK.finditer(text, start, stop):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise FilterError("a comment is still open at the end", text, start)
