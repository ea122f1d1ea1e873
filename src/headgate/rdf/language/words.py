"""A filter's text in words: IRIs, names, variables, literals, keywords and signs.

One regular expression cuts the text; a word's kind follows from the word itself. Keywords and signs are kinds
by themselves, so the kinds of a text's words, its shape, say how it is built and nothing of what it names.
Kinds are the terminals of the grammar, which drops those that begin with an underscore from its trees.
"""

from __future__ import annotations

import re
from typing import TypeAlias

IRI = "IRI"
NAME = "NAME"
"""A prefix, a colon and more."""
PREFIX_NAME = "PREFIX_NAME"
"""A prefix and a colon; also a name by itself."""
VARIABLE = "VARIABLE"
BLANK = "BLANK"
STRING = "STRING"
LANGUAGE = "LANGUAGE"
NUMBER = "NUMBER"
TRUTH = "TRUTH"
A = "A"
BARE = "BARE"
"""A word without a colon that is no keyword."""
UNKNOWN = "UNKNOWN"
"""No word at all."""

Kinds: TypeAlias = tuple[str, ...]

SIGNS = {
    "{": "_OPEN",
    "}": "_CLOSE",
    "(": "_LEFT",
    ")": "_RIGHT",
    "[": "BEGIN",
    "]": "_END",
    ".": "_DOT",
    ",": "_COMMA",
    ";": "_SEMICOLON",
    "^^": "_TYPED",
    "&&": "_AND",
    "||": "_OR",
    "!": "_NOT_SIGN",
    "=": "EQ",
    "!=": "NE",
    "<": "LT",
    "<=": "LE",
    ">": "GT",
    ">=": "GE",
    "*": "STAR",
    "/": "SLASH",
    "|": "PIPE",
    "^": "CARET",
    "+": "PLUS",
    "-": "MINUS_SIGN",
    "?": "QUESTION",
}
FUNCTIONS = (
    *("ISIRI", "ISURI", "ISLITERAL", "LANG", "DATATYPE", "STR", "LCASE"),
    *("STRSTARTS", "STRENDS", "CONTAINS", "REGEX"),
)
KEYWORDS = {
    **{word: f"_{word}" for word in ("ASK", "SELECT", "WHERE", "FILTER", "PREFIX", "BASE", "IN", "NOT")},
    "DISTINCT": "DISTINCT",
    **{word: word for word in FUNCTIONS},
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


def cut(text: str) -> list[str]:
    """Cut a text into words; of what is none, a quote without an end is cut in one, the rest in characters.

    >>> cut("ASK { ?x ex:year 2000.5 } # the end")
    ['ASK', '{', '?x', 'ex:year', '2000.5', '}']
    """
    return _WORD.findall(text, _begin(text))


def places(text: str) -> list[int]:
    """List where the words begin, and the end of the text."""
    return [found.start() for found in _WORD.finditer(text, _begin(text))] + [len(text)]


def kinds_of(words: list[str]) -> Kinds:
    """List the kinds of words.

    >>> kinds_of(cut("?x a <http://example.org/C> ;"))
    ('VARIABLE', 'A', 'IRI', '_SEMICOLON')
    """
    return tuple([_KINDS[word] for word in words])


def _begin(text: str) -> int:
    found = _START.match(text)
    return found.end() if found else 0


class _Known(dict[str, str]):
    """The kinds of signs, and of words that were seen."""

    def __missing__(self, word: str) -> str:
        kind = _kind(word)
        if len(word) <= 64:
            if len(self) >= _MAX_KNOWN:
                self.clear()
                self.update(SIGNS)
            self[word] = kind
        return kind


def _kind(word: str) -> str:
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
        return NUMBER
    if ":" in word:
        return PREFIX_NAME if word.index(":") == len(word) - 1 else NAME
    if word == "a":
        return A
    return KEYWORDS.get(word.upper(), BARE) if _LETTERS.match(word) else UNKNOWN


_MAX_KNOWN = 65_536
_KINDS = _Known(SIGNS)
