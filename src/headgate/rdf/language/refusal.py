"""Why a filter is refused, in a line that says what to write in its place.

Before the parser sees a filter its size is looked at, and later the size of the pattern. Limits keep one
subscriber from hurting the others: a filter is parsed in milliseconds, no nesting exhausts a stack, and the
numbers of a pattern's variables fit into a byte.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headgate.errors import FilterError
from headgate.rdf.language import words
from headgate.rdf.language.words import FUNCTIONS, KEYWORDS, SIGNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.rdf.language.words import Kinds


class RefusedFilterError(Exception):
    """A filter that is refused: why, and the number of the word at fault."""

    def __init__(self, reason: str, number: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.number = number


class WrongWordError(RefusedFilterError):
    """A word of a whole query that cannot stand where it does."""


class UnsupportedFilterError(RefusedFilterError):
    """A filter that is no pattern, but may be a whole query."""


BAD_PATH = (
    "this path is not supported: those known are a/rdfs:subClassOf*, rdfs:subClassOf* and rdfs:subPropertyOf*"
)
_ABSENT = "a filter cannot ask for what is absent"
_FORM = "a filter is ASK { … } or SELECT … { … }"
_MODIFIER = "the answers of a filter are a set, neither ordered nor grouped"
_UPDATE = "a filter asks and changes nothing"
_UNSUPPORTED = {
    "OPTIONAL": "a filter says what must be there",
    "UNION": "subscribe to each alternative, or join conditions by || in a FILTER",
    "MINUS": _ABSENT,
    "EXISTS": _ABSENT,
    "GRAPH": "an event is one graph",
    "FROM": "an event is one graph",
    "NAMED": "an event is one graph",
    "SERVICE": "a filter looks at the event only",
    "BIND": "name things by triples",
    "VALUES": "write FILTER(?x IN (…))",
    "UNDEF": "write FILTER(?x IN (…))",
    "AS": "SELECT takes variables or *",
    "CONSTRUCT": _FORM,
    "DESCRIBE": _FORM,
    **dict.fromkeys(("ORDER", "BY", "ASC", "DESC", "LIMIT", "OFFSET", "GROUP", "HAVING"), _MODIFIER),
    "REDUCED": "write DISTINCT or nothing",
    **dict.fromkeys(
        ("INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH"), _UPDATE
    ),
}
_OTHER_FUNCTIONS = frozenset(
    re.findall(
        r"\w+",
        """LANGMATCHES BOUND IRI URI BNODE RAND ABS CEIL FLOOR ROUND CONCAT STRLEN UCASE ENCODE_FOR_URI
        STRBEFORE STRAFTER YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ NOW UUID STRUUID MD5 SHA1 SHA256
        SHA384 SHA512 COALESCE IF STRLANG STRDT SAMETERM ISBLANK ISNUMERIC SUBSTR REPLACE COUNT SUM MIN MAX
        AVG SAMPLE GROUP_CONCAT SEPARATOR""",
    )
)
_FUNCTION_LIST = "isIRI, isLiteral, lang, datatype, str, LCASE, STRSTARTS, STRENDS, CONTAINS, REGEX"
BAD_REGEX = (
    "this regular expression is not supported: write a text, with ^ before it or $ behind it if need be, or "
    r"a word as \\bword\\b"
)
BAD_FLAGS = 'of the flags of REGEX only "i" is supported, for letters in any case'
_SPELLING = {
    "AND": "and is written &&",
    "OR": "or is written ||",
    "NOT": "not is written !",
    "&": "and is written &&",
    "|": "or is written ||",
    "=": "equality is written with one =",
    "<>": "unequal is written !=",
    "+": "arithmetic is not supported",
    "-": "arithmetic is not supported",
    "*": "arithmetic is not supported",
    "/": "arithmetic is not supported",
}
_VALUES = (words.STRING, words.NUMBER, words.TRUTH)
_IRIS = (words.IRI, words.NAME, words.PREFIX_NAME)
_READABLE = {
    words.VARIABLE: "a variable",
    **dict.fromkeys(_IRIS, "an IRI"),
    words.BARE: "a name",
    **dict.fromkeys(_VALUES, "a literal"),
    words.BLANK: "a blank node",
    "BEGIN": "a blank node",
    words.LANGUAGE: "a language",
    words.A: "'a'",
    **dict.fromkeys(FUNCTIONS, "a function"),
    **dict.fromkeys(("EQ", "NE", "LT", "LE", "GT", "GE"), "a comparison"),
    **{kind: word for word, kind in KEYWORDS.items() if kind.startswith("_")},
    "DISTINCT": "DISTINCT",
    "$END": "the end",
}
_SIGN_OF = {kind: repr(sign) for sign, kind in SIGNS.items()}
_ORDER = (*dict.fromkeys(_READABLE.values()), *_SIGN_OF.values())
_PATH_SIGNS = ("SLASH", "STAR", "PIPE", "PLUS", "QUESTION", "CARET")


def misplaced(
    texts: Sequence[str], kinds: Kinds, number: int, expected: set[str], *, tuples: bool = False
) -> str:
    """Say why a word of a query, or of tuples, cannot stand there, given the kinds that could."""
    if not texts:
        return f"the filter is empty: {_wanted(expected)}"
    if number == len(texts):
        return f"the filter ends too early: {_wanted(expected)}"
    word, kind = texts[number], kinds[number]
    if kind == words.UNKNOWN and word[0] in "\"'":
        return "a quote is still open"
    special = (
        _in_filter(texts, kinds, number, expected)
        if _within_filter(kinds, number)
        else _in_triples(kinds, number, expected)
    )
    if special:
        return special
    if kind == words.IRI and "LT" in expected:
        return f"{_shown(word)} is read as an IRI: put a space behind the <"
    if kind == words.BARE and not tuples:
        return _bare(word, called=kinds[number + 1 : number + 2] == ("_LEFT",))
    if kind == words.UNKNOWN:
        return f"{_shown(word)} is not part of the filter language"
    return f"{_shown(word)} cannot stand here: {_wanted(expected)}"


def _within_filter(kinds: Kinds, number: int) -> bool:
    """Tell whether a word belongs to the expression behind the last FILTER."""
    before = kinds[:number]
    if "_FILTER" not in before:
        return False
    start = len(before) - before[::-1].index("_FILTER")
    inside = before[start:]
    return not inside or inside.count("_LEFT") > inside.count("_RIGHT") or inside[-1] in FUNCTIONS


def _in_filter(texts: Sequence[str], kinds: Kinds, number: int, expected: set[str]) -> str | None:
    word, kind = texts[number], kinds[number]
    if kinds[number - 1] == "_FILTER" and kind in (words.VARIABLE, *_IRIS, *_VALUES, "_NOT_SIGN"):
        return "FILTER takes its condition in parentheses"
    upper = word.upper()
    if upper in ("NOT", "EXISTS") and "EXISTS" in (
        upper,
        *(each.upper() for each in texts[number + 1 : number + 2]),
    ):
        return f"EXISTS is not supported: {_ABSENT}"
    if upper in _SPELLING:
        return _SPELLING[upper]
    if kind == words.NUMBER and word[0] in "+-" and "_AND" in expected:
        return _SPELLING["+"]
    if kind == words.BLANK:
        return "a blank node cannot stand in a FILTER: give it the name of a variable"
    if kind == "_LEFT" and kinds[number - 1] in _IRIS:
        return f"functions that IRIs name are not supported: the functions are {_FUNCTION_LIST}"
    return None


def _in_triples(kinds: Kinds, number: int, expected: set[str]) -> str | None:
    if kinds[number - 1 : number] == ("_PREFIX",):
        return "a prefix is written with a colon at its end, such as ex:"
    kind, depth = kinds[number], kinds[:number].count("_OPEN") - kinds[:number].count("_CLOSE")
    if kind == "_OPEN" and depth > 0:
        if kinds[number + 1 : number + 2] == ("_SELECT",):
            return "a query within the query is not supported"
        return "a group within the group is not supported: write its triples into the outer one"
    if kind == "_LEFT" and "_SELECT" in kinds[:number] and depth == 0:
        return "SELECT takes variables or *"
    if kind == "_LEFT" and words.BLANK in expected:
        return "lists in parentheses are not supported"
    if kind in _VALUES and words.A in expected:
        return "a literal cannot be a property"
    if kind in (words.BLANK, "BEGIN") and words.A in expected:
        return "a blank node cannot be a property: use a variable"
    if kind in _PATH_SIGNS and depth > 0:
        return BAD_PATH
    return None


def _bare(word: str, *, called: bool) -> str:
    upper = word.upper()
    if upper in _UNSUPPORTED:
        return f"{upper} is not supported: {_UNSUPPORTED[upper]}"
    if upper in _OTHER_FUNCTIONS:
        return f"the function {upper} is not supported: the functions are {_FUNCTION_LIST}"
    if called:
        return f"{_shown(word)} is not a function: the functions are {_FUNCTION_LIST}"
    if word == "A":
        return "rdf:type is written a, in lower case"
    return f"{_shown(word)} is not a keyword: an IRI is <…> or prefix:name, a variable ?{_shown(word)}"


def _wanted(expected: Iterable[str]) -> str:
    """Write what could stand there, the commoner first, but for what would be refused for itself."""
    kept = set(expected)
    if words.A in kept:
        kept -= {"_LEFT", "_NOT_SIGN", "CARET"}
    elif "_FILTER" in kept:
        kept -= {*_VALUES}
    names = {_READABLE.get(kind) or _SIGN_OF[kind] for kind in kept}
    listed = sorted(names, key=_ORDER.index)
    shown = listed[:7]
    if len(listed) > len(shown):
        return f"expected {', '.join(shown)} or others"
    return f"expected {' or '.join(filter(None, (', '.join(shown[:-1]), shown[-1])))}"


def wrong_word(word: str | None, kind: str, expected: Sequence[str]) -> str:
    """Say what is wrong with a word of a whole query, None for its end, given what could stand there."""
    wanted = f"expected {' or '.join(filter(None, (', '.join(expected[:-1]), *expected[-1:])))}"
    if word is None:
        return f"the filter ends too early: {wanted}"
    if kind == words.UNKNOWN:
        if word[0] in "\"'":
            return "a quote is still open"
        return f"{_shown(word)} is not part of the filter language"
    if kind == words.BARE and word == "A":
        return "rdf:type is written a, in lower case"
    return f"{_shown(word)} cannot stand here: {wanted}"


def _shown(word: str) -> str:
    if word in SIGNS:
        return repr(word)
    return word if len(word) <= 40 else f"{word[:39]}…"


MAX_CHARACTERS = 65_536
MAX_WORDS = 8_192
MAX_DEPTH = 64
"""Open parentheses, brackets and braces."""
MAX_EDGES = 64
"""Triple patterns, those of the taxonomy included."""
MAX_VARIABLES = 64
"""Variables and blank nodes."""
MAX_LIST = 1_000
"""Commas between two parentheses, plus one: the members of an IN."""
MAX_JOINED = 1_000
"""Occurrences of && and ||, plus one."""
MAX_STEPS = 256
"""Properties in triples and paths of a whole query."""

_OPENING = {"_LEFT", "BEGIN", "_OPEN"}
_CLOSING = {"_RIGHT", "_END", "_CLOSE"}
_JOINING = {"_AND", "_OR"}


def check_text(text: str) -> None:
    """Refuse a text by its length, and one that no encoding can write."""
    if len(text) > MAX_CHARACTERS:
        raise FilterError(
            f"the filter has {len(text):,} characters and at most {MAX_CHARACTERS:,} are taken", text, None
        )
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise FilterError("half of a surrogate pair is not a character", text, error.start) from None


def check_shape(kinds: Kinds) -> None:
    """Refuse a shape by the number of its words, its nesting, and what it lists and joins."""
    if len(kinds) > MAX_WORDS:
        raise RefusedFilterError(
            f"the filter has {len(kinds):,} words and at most {MAX_WORDS:,} are taken", MAX_WORDS
        )
    joints = 1
    lists = [1]
    for number, kind in enumerate(kinds):
        if kind in _OPENING:
            lists.append(1)
            if len(lists) > MAX_DEPTH + 1:
                raise RefusedFilterError(f"the filter nests deeper than {MAX_DEPTH}", number)
        elif kind in _CLOSING:
            lists = lists[:-1] or [1]
        elif kind == "_COMMA":
            lists[-1] += 1
            if lists[-1] > MAX_LIST:
                raise RefusedFilterError(f"the list is longer than {MAX_LIST:,}", number)
        elif kind in _JOINING:
            joints += 1
            if joints > MAX_JOINED:
                raise RefusedFilterError(
                    f"the filter joins more than {MAX_JOINED:,} conditions by && and ||", number
                )


def check_edges(count: int, number: int) -> None:
    """Refuse more triple patterns than a pattern may have; `number` is the word where the last ends."""
    if count > MAX_EDGES:
        raise RefusedFilterError(f"the filter has more than {MAX_EDGES} triple patterns", number)
