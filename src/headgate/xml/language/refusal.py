"""Why a filter is refused, in a line that says what to write in its place.

A word may stand where it cannot, XPath has much that filters have not, and sizes have limits. Limits keep one
subscriber from hurting the others: a filter is parsed in milliseconds, and no nesting exhausts a stack.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headgate.core.subscription import TREE
from headgate.core.text.cutting import RefusedFilterError
from headgate.errors import FilterError
from headgate.xml.language import words
from headgate.xml.language.syntax import PATTERN_CALLS

if TYPE_CHECKING:
    from collections.abc import Sequence


_ABSENT = "a filter says what must be there, not what must be absent"
POSITION = "tell nodes apart by what they contain"
_COUNT = "a path in brackets asks for at least one node"
_ARITHMETIC = "work the number out, and compare a path with it"
_EACH = "subscribe to each alternative"
_UPWARDS = "paths lead downwards; put the condition on the upper step, as in //a[b]/c"
_SIBLING = "the order of siblings is not part of a filter; ask for both below their parent, as in //a[b]/c"
_TEXTS = "use contains(a, 'x') or starts-with(a, 'x')"
_PLAIN = "compare the path itself, as in a = 'x'"
_NAMES = "write the name as a step, or *:name for any namespace"
_ONE = "a filter looks at one document only"
_NODES = "steps are names, *, @name and text()"
_TYPES = "write numbers without quotes and texts in quotes"
_SETS = "write one path, or " + _EACH
_QUERY = "a filter is a path with conditions and marks"

AXES = {
    "self": "give the step its name, or compare . in brackets",
    **dict.fromkeys(("parent", "ancestor", "ancestor-or-self"), _UPWARDS),
    **dict.fromkeys(("following-sibling", "preceding-sibling", "following", "preceding"), _SIBLING),
    "descendant-or-self": "write // before the name",
    "namespace": "write Q{namespace}name",
}
"""The axes that filters have not."""

FUNCTIONS = {
    **dict.fromkeys(("not", "empty"), f"{_ABSENT}; for values there is !="),
    **dict.fromkeys(("position", "last", "subsequence", "head", "tail", "reverse"), POSITION),
    **dict.fromkeys(("count", "distinct-values", "exactly-one", "one-or-more", "zero-or-one"), _COUNT),
    **dict.fromkeys(("exists", "boolean"), "write the path alone, as in [a]"),
    **dict.fromkeys(("true", "false"), "compare with the text 'true' or 'false', in quotes"),
    **dict.fromkeys(("sum", "avg", "min", "max", "floor", "ceiling", "round", "abs"), _ARITHMETIC),
    **dict.fromkeys(("string", "number", "data", "normalize-space", "normalize-unicode"), _PLAIN),
    **dict.fromkeys(
        (
            *("ends-with", "matches", "replace", "tokenize", "substring", "substring-before"),
            *("substring-after", "string-length", "translate", "concat", "string-join", "compare"),
            *("upper-case", "lower-case", "contains-token"),
        ),
        _TEXTS,
    ),
    **dict.fromkeys(("name", "local-name", "node-name"), _NAMES),
    "namespace-uri": "write Q{namespace}name",
    "lang": "write [@xml:lang = 'en'], which looks at the node itself only",
    "id": "write [@id = 'x']",
    **dict.fromkeys(("doc", "document", "collection", "unparsed-text", "key", "current", "root"), _ONE),
    "node": _NODES,
    **dict.fromkeys(("comment", "processing-instruction"), f"documents are read without them; {_NODES}"),
    **dict.fromkeys(("element", "attribute", "document-node", "item"), _NODES),
    **dict.fromkeys(("current-date", "current-dateTime", "current-time"), "write the value"),
}
"""Functions and node tests that filters have not; others are refused by a line for all."""

OPERATORS = {
    "or": f"{_EACH}, as one filter asks for all of it",
    **dict.fromkeys(("div", "mod", "idiv", "*", "-"), _ARITHMETIC),
    "eq": "write =",
    "ne": "write !=",
    "lt": "write <",
    "le": "write <=",
    "gt": "write >",
    "ge": "write >=",
    **dict.fromkeys(("union", "intersect", "except"), _SETS),
    "is": "nodes are not compared, only their values",
    "to": "write two comparisons, as in [a >= 1 and a <= 5]",
    **dict.fromkeys(("instance", "cast", "castable", "treat"), _TYPES),
    **dict.fromkeys(
        ("return", "satisfies", "in", "then", "else", "if", "for", "some", "every", "let"), _QUERY
    ),
    "AND": "write and, in lower case",
    "OR": f"{_EACH}, as one filter asks for all of it",
}
"""Words between two operands."""

SIGNS = {
    "|": f"| is not supported: {_SETS}",
    "||": f"|| is not supported: {_EACH}",
    "&&": "&& is not an operator of XPath: write and",
    "&": "& is not part of the filter language: write and, and < in place of &lt;",
    "==": "equality is written with one =",
    "<>": "unequal is written !=",
    "!": f"! is not supported: {_ABSENT}; for values there is !=",
    "+": f"+ is not supported: {_ARITHMETIC}",
    "(:": "comments are not supported: leave them out",
    "::": "a name of an axis stands before ::",
    "@": "a name stands behind @, or *",
    "#": "# is not part of the filter language: comments are not supported",
    "?": "? is not supported: filters have no optional parts",
    "`": "a text stands in quotes ' or \"",
    **dict.fromkeys("\u201c\u201d\u2018\u2019", "a text stands in plain quotes ' or \""),
    "}": "a brace is closed that was not opened",
    ":": "a colon stands within a name only, as in *:name",
    "\u00a0": "a no-break space stands here: write a plain one",
}
"""Signs that are no words of filters."""


BAD_REGEX = r"this regular expression is not supported: write a word, as in re:test(a, '\bword\b', 'i')"
BAD_FLAGS = r"words are found in any case: write 'i' behind them, as in re:test(a, '\bword\b', 'i')"
ARGUMENTS = "the function takes a path and a text, as in contains(a, 'x')"
BEHIND = "a path cannot go on behind parentheses: write it without them"
_MARKED = "a mark stands behind the name of a step, as in [a{val} > 3]"


def not_behind(texts: Sequence[str], at: int, expected: str, dialect: str) -> RefusedFilterError:
    """Say why a word cannot go on where an operand ends."""
    word, before = texts[at], texts[at - 1]
    kind = words.kind_of(word, dialect)
    if word == words.END:
        reason = f"the filter ends too early: expected {expected}"
    elif kind == words.MARK:
        reason = (
            "a mark stands right behind the name, before the brackets: a{id}[b]"
            if before == "]"
            else "a step has one mark: join them, as in a{id,val}"
            if words.kind_of(before, dialect) == words.MARK
            else _MARKED
        )
    elif word in OPERATORS:
        reason = f"{word} is not supported: {OPERATORS[word]}"
    elif word == "(":
        reason = "parentheses cannot go on behind a path: join conditions by and"
    elif word == "," and "and" in expected:
        value = words.kind_of(before, dialect) in (words.STRING, words.NUMBER)
        reason = f"',' is not supported: {'compare with one value' if value else 'join paths by and'}"
    elif kind in (words.NAME, words.ATTRIBUTE, words.AXIS, words.FUNCTION):
        quoted = before[0] in "'\""
        reason = f"{shown(word)} cannot stand here: " + (
            "a quote within a text is doubled, as in 'it''s'"
            if quoted
            else "join conditions by and, steps by / or //"
        )
    else:
        if kind in (words.STRING, words.NUMBER) and "and" in expected:
            marked = before == "]" or words.kind_of(before, dialect) == words.MARK
            if marked or words.step_of[before]:
                expected = f"'/', '//', {'' if marked else 'a mark, '}'[', a comparison, {expected}"
        reason = _nowhere(texts, at, dialect) or f"{shown(word)} cannot stand here: expected {expected}"
    return RefusedFilterError(reason, at)


def no_operand(texts: Sequence[str], at: int, dialect: str) -> RefusedFilterError:
    """Say why no path and no condition begins with a word."""
    word, before = texts[at], texts[at - 1] if at else ""
    value = before in ("=", "!=", "<", "<=", ">", ">=")
    expected = f"expected {'a text in quotes or a number' if value else 'a path or a condition'}"
    if word == words.END:
        return RefusedFilterError(f"the filter ends too early: {expected}", at)
    reason = _nowhere(texts, at, dialect)
    if word == "]" and before == "[":
        reason = "the brackets are empty: write a condition, such as [b] or [. = 'x']"
    return RefusedFilterError(reason or f"{shown(word)} cannot stand here: {expected}", at)


def no_step(texts: Sequence[str], at: int, dialect: str) -> RefusedFilterError:
    """Say why a word is no step."""
    word, before = texts[at], texts[at - 1] if at else ""
    expected = "expected a name, an attribute or text()"
    if word == words.END:
        return RefusedFilterError(f"the filter ends too early: {expected}", at)
    kind = words.kind_of(word, dialect)
    name = words.name_in(word)
    if kind in (words.STRING, words.NUMBER) or (kind == words.FUNCTION and name in PATTERN_CALLS):
        reason = f"{shown(word)} is no step: a step is a name, *, @name or text()"
    elif kind == words.FUNCTION:
        reason = unsupported(name)
    elif word == "(":
        reason = "parentheses in a path are not supported: write one path, or subscribe to each"
    elif word in ("/", "//"):
        reason = f"{word} stands behind {'another /' if before == '/' else before}: a name is between them"
    elif word == "[":
        reason = "a step needs a name before its brackets: write * for any"
    else:
        reason = _nowhere(texts, at, dialect) or f"{shown(word)} cannot stand here: {expected}"
    return RefusedFilterError(reason, at)


def _nowhere(texts: Sequence[str], at: int, dialect: str) -> str:
    """Say why a word can stand nowhere, or nowhere but behind a name; nothing if it can."""
    word = texts[at]
    kind = words.kind_of(word, dialect)
    if kind == words.OPEN_QUOTE:
        return "a quote is still open"
    if kind == words.OPEN_MARK:
        return "a brace is still open: marks are written a{id,val}"
    if kind == words.MARK:
        return _MARKED
    if kind == words.OTHER_MARK:
        if dialect == TREE:
            return f"a mark of the tree notation begins with an underscore: write _{word}"
        return (
            f"{word} is a mark of the tree notation: write {word[1:]}, behind a space if the name ends with _"
        )
    if kind == words.EXPONENT:
        return f"{shown(word)} has an exponent: write the number with digits and a point"
    if kind == words.VARIABLE:
        return f"{shown(word)} is a variable, and filters have none: write the value"
    if kind in (words.PREFIXED, words.WILD):
        if texts[at + 1] == "(":
            return f"{shown(word)}() is an extension: only functions of XPath 1.0 are evaluated"
        sign = "@" * word.startswith("@")
        prefix, _, local = word.lstrip("@" + words.GAPS).partition(":")
        if dialect == TREE and local == "*":
            return all_names(sign)
        if dialect == TREE:
            return (
                f"the prefix {prefix}: is not declared: write {sign}Q{{namespace}}{local}, or {sign}*:{local}"
            )
        return (
            f"the prefix {prefix}: is not declared: declare it for the set, or write "
            f"{sign}Q{{namespace}}{local}"
        )
    if kind == words.UNKNOWN:
        return SIGNS.get(word) or f"{shown(word)} is not part of the filter language"
    return ""


def all_names(sign: str) -> str:
    """Say why a step is not one of tree patterns that asks for all names of a namespace."""
    return f"all names of a namespace are not supported: write {sign}*"


def not_an_operator(sign: str) -> str:
    """Say why an operator is not one of tree patterns."""
    return SIGNS.get(sign) or f"{sign} is not supported: {OPERATORS[sign]}"


def not_an_axis(axis: str) -> str:
    """Say why an axis is not one of tree patterns."""
    return f"{axis}:: is not supported: {AXES[axis]}"


def unsupported(name: str) -> str:
    """Say why a function is not one of tree patterns."""
    if name in FUNCTIONS:
        return f"{name}() is not supported: {FUNCTIONS[name]}"
    if name in OPERATORS:
        return f"{name} is not supported: {OPERATORS[name]}"
    return f"{shown(name)}() is not supported: the functions are contains(), starts-with() and re:test()"


def shown(word: str) -> str:
    """Write a word so that it fits into a line; signs in quotes."""
    if len(word) > 40:
        return f"{word[:39]}…"
    return repr(word) if word in words.SIGNS else word


MAX_CHARACTERS = 65_536
MAX_WORDS = 4_096
MAX_DEPTH = 64
"""Open brackets and parentheses."""
MAX_NODES = 256
MAX_TESTS = 64
"""Of one node."""

_NO_CHARACTER = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def check_text(text: object) -> str:
    """Refuse what is no text, and a text by its length or for a character that no XML document has."""
    if not isinstance(text, str):
        raise FilterError(f"a filter is a text, not {type(text).__name__}", "", None)
    if len(text) > MAX_CHARACTERS:
        raise FilterError(
            f"the filter has {len(text):,} characters and at most {MAX_CHARACTERS:,} are taken", text, None
        )
    if not text.isprintable():
        match_ = _NO_CHARACTER.search(text)
        if match_:
            reason = f"U+{ord(match_[0]):04X} is not a character of XML: no document has it"
            raise FilterError(reason, text, match_.start())
    return text
