"""Why a filter is refused, in a line that says what to write in its place.

Before the parser sees a filter its size is looked at, and later the size of the pattern. Limits keep one
subscriber from hurting the others: a filter is parsed in milliseconds, no nesting exhausts a stack, and the
numbers of a pattern's variables fit into a byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.core.arguments import likeliest
from headgate.core.text.cutting import RefusedFilterError
from headgate.errors import FilterError
from headgate.rdf.language import words
from headgate.rdf.language.words import ARGUMENTS, CHANGING, CLAUSES, FUNCTIONS, SIGNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.rdf.language.words import Kinds


_UPDATES = ("INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH")
_UNSUPPORTED = {
    **dict.fromkeys(("GRAPH", "FROM", "NAMED"), "an event is one graph"),
    "SERVICE": "a filter looks at the event only",
    "DESCRIBE": "a filter is ASK { … }, SELECT … { … } or CONSTRUCT { … } { … }",
    **dict.fromkeys(_UPDATES, "a filter asks and changes nothing"),
}
_SPELLING = {
    "AND": "and is written &&",
    "OR": "or is written ||",
    "NOT": "not is written !",
    "&": "and is written &&",
    "|": "or is written ||",
    "<>": "unequal is written !=",
}
_MEANT = {name: name for name in (*ARGUMENTS, *CHANGING)}
_MEANT |= {"LOWER": "LCASE", "UPPER": "UCASE", "LENGTH": "STRLEN", "STARTSWITH": "STRSTARTS"}
"""Functions, and what others call them."""
_ENDING = {"VALUES", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET"}
_READABLE = {
    **{sign: repr(sign) for sign in SIGNS},
    **dict.fromkeys(words.IRIS, words.IRI),
    words.BARE: "a name",
    **dict.fromkeys(words.LITERALS, "a literal"),
    "[": words.BLANK,
    words.A: "'a'",
    **dict.fromkeys((*ARGUMENTS, *CHANGING, "EXISTS"), "a function"),
    **dict.fromkeys(("=", "!=", "<", "<=", ">", ">="), "a comparison"),
}
_TRIPLE = "a triple"
_ORDER = (
    *(_TRIPLE, words.VARIABLE, words.IRI, "a name", "a literal", words.BLANK, words.LANGUAGE, "'a'"),
    *("a function", "a comparison", *CLAUSES, words.END, *map(repr, SIGNS)),
)
_STARTS = {words.VARIABLE, words.BLANK, *words.IRIS, *words.LITERALS, "(", "["}
_ARITHMETIC = {"*", "/", "+", "-", words.SIGNED, words.LANGUAGE, "^^"}


def misplaced(
    texts: Sequence[str], kinds: Kinds, number: int, expected: set[str], *, names: bool = False
) -> str:
    """Say why a word cannot stand where it does, given the kinds that could; the last kind is the end.

    `names`: a word without a colon may be a name.
    """
    if len(kinds) == 1:
        return f"the filter is empty: {_wanted(expected)}"
    if kinds[number] == words.END:
        return f"the filter ends too early: {_wanted(expected)}"
    word, kind, upper = texts[number], kinds[number], texts[number].upper()
    if kind == words.UNKNOWN and word[0] in "\"'":
        return "a quote is still open"
    special = _in_filter(word, upper, kind, expected) or _in_triples(kind, expected)
    if special:
        return special
    if upper in _UNSUPPORTED and not names:
        return f"{upper} is not supported: {_UNSUPPORTED[upper]}"
    if kind == "UNION":
        return "UNION stands between groups: { … } UNION { … }"
    if kind == words.BARE and not names:
        return _bare(word, called=kinds[number + 1] == "(")
    if kind == words.UNKNOWN:
        return f"{_shown(word)} is not part of the filter language"
    return f"{_shown(word)} cannot stand here: {_wanted(expected)}"


def _in_filter(word: str, upper: str, kind: str, expected: set[str]) -> str | None:
    """Say what is wrong within an expression, where a value or an operator could stand."""
    if not expected & {"&&", "!"} or words.A in expected:
        return None
    if kind == words.IRI and "<" in expected and word != "<>":
        return f"{_shown(word)} is read as an IRI: put a space behind the <"
    return _SPELLING.get(upper)


def _in_triples(kind: str, expected: set[str]) -> str | None:
    if words.A not in expected:
        return None
    if kind in words.LITERALS:
        return "a literal cannot be a property"
    return "a blank node cannot be a property: use a variable" if kind in (words.BLANK, "[") else None


def _bare(word: str, *, called: bool) -> str:
    if called:
        near = likeliest(word.upper(), _MEANT)
        advice = f"did you mean {_MEANT[near]}?" if near else f"there are {', '.join(FUNCTIONS)} and others"
        return f"{_shown(word)} is not a function of SPARQL 1.1: {advice}"
    if word == "A":
        return "rdf:type is written a, in lower case"
    return f"{_shown(word)} is not a keyword: an IRI is <…> or prefix:name, a variable ?{_shown(word)}"


def _wanted(expected: Iterable[str]) -> str:
    """Write what could stand there, the commoner first, but for what is rarely meant."""
    kept = set(expected)
    if words.END in kept:
        kept -= _ENDING
    elif words.A in kept:
        kept -= {"(", "!", "^"}
    elif "FILTER" in kept:
        kept = (
            kept - {"OPTIONAL", "MINUS", "BIND", "VALUES", "{"} if "." in kept else kept - _STARTS | {_TRIPLE}
        )
        kept -= {*_ARITHMETIC, "{"}
    elif kept & {"&&", "!"}:
        kept -= _ARITHMETIC
    elif words.BLANK in kept:
        kept -= {"(", "*", "/", "|", "+", "?"}
    listed = sorted({_READABLE.get(kind, kind) for kind in kept}, key=_ORDER.index)
    shown = listed[:7]
    if len(listed) > len(shown):
        return f"expected {', '.join(shown)} or others"
    return f"expected {' or '.join(filter(None, (', '.join(shown[:-1]), shown[-1])))}"


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

_OPENING = {"(", "[", "{"}
_CLOSING = {")", "]", "}"}
_JOINING = {"&&", "||"}


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
        elif kind == ",":
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


def too_many(count: int) -> RefusedFilterError:
    """Say that a filter has more variables than it may have."""
    return RefusedFilterError(f"the filter has {count} variables and at most {MAX_VARIABLES} are taken", 0)
