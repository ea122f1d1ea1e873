"""Which words may stand beside each other.

The parser takes more than Spark does: `a AND OR (b)`, `a BETWEEN 1 2`, `a NOT IS NULL`, `IS NOT NULL` of an
attribute called IS. Some of that it reads in a way of its own, so it is refused before the parser sees it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from headgate.errors import FilterError

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

# Words with an operand on their left.
_INFIX = {
    TokenType.AND,
    TokenType.OR,
    TokenType.IS,
    TokenType.IN,
    TokenType.LIKE,
    TokenType.ILIKE,
    TokenType.RLIKE,
    TokenType.BETWEEN,
    TokenType.ESCAPE,
}
_AFTER_NOT = {TokenType.IN, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE, TokenType.BETWEEN}
_AFTER_PLUS = {TokenType.NUMBER, TokenType.PLUS, TokenType.DASH}
# An operand comes next.
_OPENING = _INFIX | {
    TokenType.L_PAREN,
    TokenType.COMMA,
    TokenType.DOT,
    TokenType.DASH,
    TokenType.PLUS,
    TokenType.NOT,
    TokenType.EQ,
    TokenType.NEQ,
    TokenType.LT,
    TokenType.LTE,
    TokenType.GT,
    TokenType.GTE,
    TokenType.NULLSAFE_EQ,
}
_LITERALS = {
    TokenType.NUMBER,
    TokenType.STRING,
    TokenType.RAW_STRING,
    TokenType.NULL,
    TokenType.TRUE,
    TokenType.FALSE,
}
_ENDING = _LITERALS | {TokenType.R_PAREN}
_BEGINNING = _LITERALS | {TokenType.L_PAREN, TokenType.DATE, TokenType.TIMESTAMP, TokenType.TIMESTAMPLTZ}
# Before `<` the parser takes them for types with parameters; ARRAY it takes for a type before anything but (.
_TYPES = {
    TokenType.ARRAY,
    TokenType.LIST,
    TokenType.MAP,
    TokenType.NULLABLE,
    TokenType.OBJECT,
    TokenType.RANGE,
    TokenType.STRUCT,
    TokenType.UNION,
}
_MOMENTS = {
    TokenType.DATE,
    TokenType.TIMESTAMP,
    TokenType.TIMESTAMPLTZ,
    TokenType.TIMESTAMPNTZ,
    TokenType.TIMESTAMPTZ,
}
_WORDS = {TokenType.VAR, TokenType.WITH}
# What makes a literal of a type, and the types that it may follow.
_AFTER_MOMENT = {
    TokenType.STRING: {"date", "timestamp", "timestamp_ltz"},
    TokenType.RAW_STRING: {"date", "timestamp", "timestamp_ltz"},
    TokenType.L_PAREN: {"date", "timestamp"},
    **dict.fromkeys(_WORDS, frozenset[str]()),
}
_ABSENT = {
    TokenType.ALIAS: "AS is not part of the filter language; `as` is an attribute",
    TokenType.ANY: "ANY is not part of the filter language; `any` is an attribute",
    TokenType.INTERVAL: "INTERVAL is not part of the filter language; `interval` is an attribute",
    TokenType.CASE: "CASE is not part of the filter language; AND and OR are",
    TokenType.ISNULL: "ISNULL is not part of the filter language; IS NULL is",
    TokenType.NOTNULL: "NOTNULL is not part of the filter language; IS NOT NULL is",
}
# Nothing is wrong with these, one after another.
_CALM = {
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.EQ,
    TokenType.NEQ,
    TokenType.LT,
    TokenType.LTE,
    TokenType.GT,
    TokenType.GTE,
    TokenType.NULLSAFE_EQ,
}
_CALM_NEXT = _CALM | _LITERALS
# Named once: looking a member up in an enumeration takes as long as a call.
_ALL = TokenType.ALL
_ARRAY = TokenType.ARRAY
_COMMA = TokenType.COMMA
_DOT = TokenType.DOT
_IS = TokenType.IS
_LT = TokenType.LT
_L_PAREN = TokenType.L_PAREN
_NOT = TokenType.NOT
_NUMBER = TokenType.NUMBER
_PLUS = TokenType.PLUS
_JOINS = {TokenType.AND, TokenType.OR}


def check_neighbours(token: Token, previous: Token | None, before: Token | None, text: str) -> None:
    """Refuse a word that does not go with the two before it."""
    kind = token.token_type
    last = None if previous is None else previous.token_type
    if last in _CALM and kind in _CALM_NEXT:
        return
    second = None if before is None else before.token_type
    written = text[token.start : token.end + 1]
    if kind in _ABSENT and last is not _DOT:
        raise FilterError(_ABSENT[kind], text, token.start)
    # After an operand, NOT belongs to what follows; elsewhere it begins an operand.
    postfix = last is _NOT and second is not None and second not in _OPENING
    if kind in _INFIX and not postfix and (last is None or last in _OPENING):
        name = "" if kind in _JOINS else f"; an attribute of that name is `{written}`"
        raise FilterError(f"nothing stands before {written}{name}", text, token.start)
    if previous is None:
        return
    if kind is _ALL and last is _COMMA:
        reason = "ALL may stand before the first argument only; `all` is an attribute"
        raise FilterError(reason, text, token.start)
    if last is _DOT:
        _check_dotted(token, previous, text)
    if last in _MOMENTS and second is not _DOT and kind in _AFTER_MOMENT:
        _check_moment(token, previous, text)
    if postfix and (kind not in _AFTER_NOT or text[previous.start] == "!"):
        raise FilterError("NOT stands before IN, LIKE, BETWEEN or a whole expression", text, previous.start)
    if last is _IS and kind is _NOT and written == "!":
        raise FilterError("'!' stands before a whole expression only; write IS NOT NULL", text, token.start)
    sign = last is _PLUS and (second is None or second in _OPENING)
    if sign and kind not in _AFTER_PLUS:
        raise FilterError("a plus sign may stand before a number only", text, previous.start)
    if kind in _BEGINNING and _ends_literal(previous, before):
        raise FilterError("AND, OR or an operator is missing before this", text, token.start)
    if kind is _L_PAREN and text[previous.start : previous.end + 1].lower() in {"cast", "try_cast"}:
        reason = "CAST is not part of the filter language; write the literal in the type you need"
        raise FilterError(reason, text, previous.start)
    typed = kind is _LT if last is not _ARRAY else kind is not _L_PAREN
    if typed and last in _TYPES and second is not _DOT:
        name = text[previous.start : previous.end + 1]
        reason = f"types are not part of the filter language; an attribute of that name is `{name}`"
        raise FilterError(reason, text, previous.start)


def _check_dotted(token: Token, dot: Token, text: str) -> None:
    """Refuse what is neither a name nor the rest of a number behind a dot."""
    if token.token_type is _NUMBER and token.start != dot.end + 1:
        raise FilterError("a number is cut in two by a blank or a comment", text, dot.start)
    if not (text[token.start].isalnum() or text[token.start] in "_`"):
        raise FilterError("a name is missing after this dot", text, dot.start)


def _check_moment(token: Token, previous: Token, text: str) -> None:
    """Refuse types of moments that Spark has no literals of, and TIMESTAMP_NTZ, which drops zones."""
    word = text[previous.start : previous.end + 1]
    if word.lower() in _AFTER_MOMENT[token.token_type]:
        return
    if token.token_type in _WORDS:
        word = text[previous.start : token.end + 1]
    raise FilterError(f"{word} is not part of the filter language: write TIMESTAMP '…'", text, previous.start)


def _ends_literal(token: Token, before: Token | None) -> bool:
    # The tokenizer splits 5L into 5, :: and L, all three at the same place.
    return token.token_type in _ENDING or (before is not None and before.start == token.start)
