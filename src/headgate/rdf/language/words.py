"""A filter's text in words: IRIs, names, variables, literals, keywords and signs.

One regular expression cuts the text; a word's kind follows from the word itself. Keywords and signs are kinds
by themselves, so the kinds of a text's words, its shape, say how it is built and nothing of what it names.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from headgate.core.text.cutting import BoundedCache, Cutter

IRI = "an IRI"
NAME = "a name"
"""A prefix, a colon and more."""
PREFIX_NAME = "a prefix"
"""A prefix and a colon; also a name by itself."""
VARIABLE = "a variable"
BLANK = "a blank node"
STRING = "a string"
LANGUAGE = "a language"
NUMBER = "a number"
SIGNED = "a signed number"
TRUTH = "a truth value"
A = "a"
BARE = "a bare name"
"""A word without a colon that is no keyword."""
UNKNOWN = "no word"
END = "the end"
"""What comes behind the last word."""

IRIS = (IRI, NAME, PREFIX_NAME)
NUMBERS = (NUMBER, SIGNED)
LITERALS = (STRING, NUMBER, SIGNED, TRUTH)

Kinds: TypeAlias = tuple[str, ...]

SIGNS = (
    *("{", "}", "(", ")", "[", "]", ".", ",", ";", "^^", "&&", "||", "!", "=", "!=", "<", "<=", ">", ">="),
    *("*", "/", "|", "^", "+", "-", "?"),
)
FUNCTIONS = (
    *("ISIRI", "ISURI", "ISLITERAL", "LANG", "DATATYPE", "STR", "LCASE"),
    *("STRSTARTS", "STRENDS", "CONTAINS", "REGEX"),
)
"""The functions that an index knows."""
AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")
CHANGING = ("RAND", "NOW", "UUID", "STRUUID")
"""Functions whose answer is not the same each time."""
_MANY = 1_000
_ONE = """
    STR LANG DATATYPE BOUND IRI URI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI YEAR MONTH DAY
    HOURS MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512 ISIRI ISURI ISBLANK ISLITERAL ISNUMERIC
    COUNT SUM MIN MAX AVG SAMPLE GROUP_CONCAT"""
_TAKES = {
    (1, 1): _ONE,
    (0, 1): "BNODE",
    (2, 2): "LANGMATCHES CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER STRLANG STRDT SAMETERM",
    (2, 3): "REGEX SUBSTR",
    (3, 4): "REPLACE",
    (3, 3): "IF",
    (0, _MANY): "CONCAT COALESCE",
}
ARGUMENTS = {name: takes for takes, names in _TAKES.items() for name in names.split()}
"""How many arguments functions and aggregates take, at least and at most."""
CLAUSES = (
    *("ASK", "SELECT", "CONSTRUCT", "WHERE", "FILTER", "PREFIX", "BASE", "IN", "NOT", "DISTINCT", "REDUCED"),
    *("OPTIONAL", "UNION", "MINUS", "BIND", "VALUES", "UNDEF", "AS", "EXISTS", "GROUP", "BY", "HAVING"),
    *("ORDER", "ASC", "DESC", "LIMIT", "OFFSET", "SEPARATOR"),
)
KEYWORDS = {
    **{word: word for word in (*CLAUSES, *ARGUMENTS, *CHANGING)},
    "TRUE": TRUTH,
    "FALSE": TRUTH,
}

_LETTER = (
    r"A-Za-z\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u02FF\u0370-\u037D\u037F-\u1FFF\u200C\u200D\u2070-\u218F"
    r"\u2C00-\u2FEF\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD\U00010000-\U000EFFFF"
)
_FIRST = rf"{_LETTER}_0-9"
_LATER = rf"{_FIRST}\u00B7\u0300-\u036F\u203F\u2040"
_INNER = rf"{_LATER}\-"
_ESCAPED = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
# A bound on prefixes, as the text a.a.a… would be read anew from each letter on in search of the colon.
_PREFIX = rf"[{_LETTER}][{_INNER}]{{0,99}}+(?:\.{{1,9}}+[{_INNER}]{{1,99}}+){{0,9}}+"
_LOCAL = rf"(?:[{_FIRST}:]|{_ESCAPED})(?:\.*+(?:[{_INNER}:]|{_ESCAPED}))*+"
# Possessive throughout: a quote or a name that fails is never tried again with less.
_STRING = r"""
    "{3}(?:"{0,2}+(?:[^"\\]|\\.))*+"{3} | '{3}(?:'{0,2}+(?:[^'\\]|\\.))*+'{3}
  | (?!"{3}|'{3}) (?: "(?:[^"\\\r\n]|\\[^\r\n])*+" | '(?:[^'\\\r\n]|\\[^\r\n])*+' )"""
_GAP = r"(?:[ \t\r\n]++|\#[^\r\n]*+)*+"
_WORD = re.compile(
    rf"""(
        [?$][{_FIRST}][{_LATER}]*+
      | [{{}}()\[\],;=*/]
      | (?:{_PREFIX})?+:(?:{_LOCAL})?+
      | [{_LETTER}][{_INNER}]*+
      | <(?:[^<>"{{}}|^`\\\x00-\x20]|\\u[0-9A-Fa-f]{{4}}|\\U[0-9A-Fa-f]{{8}})*+>
      | [+-]?(?:[0-9]++(?:\.[0-9]*+)?[eE][+-]?[0-9]++|\.[0-9]++[eE][+-]?[0-9]++|[0-9]*+\.[0-9]++|[0-9]++)
      | {_STRING}
      | (?:"{{3}}|'{{3}}).*+ | ["'][^\r\n]*+
      | @[A-Za-z]++(?:-[A-Za-z0-9]++)*+
      | _:[{_FIRST}](?:\.*+[{_INNER}])*+
      | \^\^ | && | \|\| | [!<>]=
      | .
    ){_GAP}""",
    re.VERBOSE | re.DOTALL,
)
_START = re.compile(_GAP)
_LETTERS = re.compile(rf"[{_LETTER}]")
_QUOTED = re.compile(_STRING, re.VERBOSE | re.DOTALL)


_CUTTER = Cutter(_START, _WORD)
cut, places = _CUTTER.cut, _CUTTER.places
"""Of what is no word, a quote without an end is cut in one, the rest in characters."""


def kinds_of(words: list[str]) -> Kinds:
    """List the kinds of words.

    >>> kinds_of(cut("?x a <http://example.org/C> ;"))
    ('a variable', 'a', 'an IRI', ';')
    """
    return tuple(map(_KINDS.__getitem__, words))


def _kind(word: str) -> str:
    if word in _SIGNS:
        return word
    first = word[0]
    if first in "?$" and len(word) > 1:
        return VARIABLE
    if first == "<":
        return IRI
    if first in "\"'":
        return STRING if _QUOTED.fullmatch(word) else UNKNOWN
    if first == "@" and len(word) > 1:
        return LANGUAGE
    if word.startswith("_:") and len(word) > 2:
        return BLANK
    if first in "0123456789" or (first in "+-." and len(word) > 1):
        return SIGNED if first in "+-" else NUMBER
    if ":" in word:
        return PREFIX_NAME if word.index(":") == len(word) - 1 else NAME
    if word == "a":
        return A
    return KEYWORDS.get(word.upper(), BARE) if _LETTERS.match(word) else UNKNOWN


_SIGNS = frozenset(SIGNS)
_KINDS = BoundedCache(_kind)
