"""Why a filter is refused, in a line that says what to write in its place.

A word may stand where it cannot, XPath has much that filters have not, and sizes have limits. Limits keep one
subscriber from hurting the others: a filter is parsed in milliseconds, and no nesting exhausts a stack.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headgate.core.subscription import TREE
from headgate.errors import FilterError
from headgate.xml.language import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.xml.language.words import Kinds


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
    "text": "text() has nothing between its parentheses",
    **dict.fromkeys(("current-date", "current-dateTime", "current-time"), "write the value"),
}
"""Functions and node tests that filters have not; others are refused by a line for all."""

OPERATORS = {
    "or": f"{_EACH}, as one filter asks for all of it",
    **dict.fromkeys(("div", "mod", "idiv", "*"), _ARITHMETIC),
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


class RefusedFilterError(Exception):
    """A filter that is refused: why, and the number of the word at fault."""

    def __init__(self, reason: str, number: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.number = number


_COMPARISONS = frozenset(("EQ", "NE", "LT", "LE", "GT", "GE"))
_VALUES = frozenset((words.STRING, words.NUMBER))
_STEPS = frozenset((words.NAME, words.VAL, words.ATTRIBUTE, words.TEXT_STEP))
_AXES = frozenset(words.AXES.values())
_PATHS = frozenset((*_STEPS, *_AXES, words.SELF, "SLASH", "DOUBLE"))
_SLASHES = frozenset(("SLASH", "DOUBLE"))
_CALLS = frozenset(words.FUNCTIONS.values())
BAD_REGEX = r"this regular expression is not supported: write a word, as in re:test(a, '\bword\b', 'i')"
BAD_FLAGS = r"words are found in any case: write 'i' behind them, as in re:test(a, '\bword\b', 'i')"
_ARGUMENTS = "the function takes a path and a text, as in contains(a, 'x')"
_READABLE = {
    "SLASH": "'/'",
    "DOUBLE": "'//'",
    **dict.fromkeys((words.NAME, words.VAL), "a name"),
    words.ATTRIBUTE: "an attribute",
    words.TEXT_STEP: "text()",
    words.MARK: "a mark",
    "_BEGIN": "'['",
    **dict.fromkeys(_COMPARISONS, "a comparison"),
    words.STRING: "a text in quotes",
    words.NUMBER: "a number",
    "_COMMA": "','",
    "_RIGHT": "')'",
    "_END": "']'",
    words.AND: "and",
    "$END": "the end",
}
_ORDER = tuple(dict.fromkeys(_READABLE.values()))


def misplaced(
    texts: Sequence[str], kinds: Kinds, number: int, expected: set[str], dialect: str
) -> RefusedFilterError:
    """Say why a word cannot stand there, given the kinds that could."""
    if not texts:
        return RefusedFilterError("the filter is empty: write a path such as //news[company = 'ACME']", 0)
    before = kinds[number - 1] if number else ""
    if before in _VALUES:
        found = _alone(texts, kinds, number)
        if found:
            return found
    if before == "SLASH" and (number == 1 or kinds[number - 2] not in words.OPERANDS):
        ahead = kinds[number] if number < len(kinds) else "$END"
        if ahead in _COMPARISONS or ahead in (words.AND, "_END", "_RIGHT", "_COMMA", "$END"):
            return RefusedFilterError("/ alone is the document: write /* for its root element", number - 1)
    if number == len(texts):
        if before == "_COMMA" or before in _CALLS:
            return RefusedFilterError(_ARGUMENTS, number)
        return RefusedFilterError(f"the filter ends too early: {_wanted(expected)}", number)
    word, kind = texts[number], kinds[number]
    reason = (
        _by_itself(word, kind, dialect)
        or _behind_path(word, kind, before, expected)
        or _compared(word, kind, before, expected)
        or _elsewhere(word, kind, before)
        or f"{shown(word)} cannot stand here: {_wanted(expected)}"
    )
    return RefusedFilterError(reason, number)


def _alone(texts: Sequence[str], kinds: Kinds, number: int) -> RefusedFilterError | None:
    """Refuse a literal that is a condition by itself, at the literal."""
    place = number - 1
    start = place - 1 if place and kinds[place - 1] == "_MINUS" else place
    if start and kinds[start - 1] not in ("_BEGIN", "_LEFT", words.AND):
        return None
    if number < len(kinds) and kinds[number] not in ("_END", "_RIGHT", words.AND):
        return None
    written = "".join(texts[start:number])
    if kinds[place] == words.NUMBER and start and kinds[start - 1] == "_BEGIN":
        return RefusedFilterError(
            f"[{written}] asks for a position, which is not supported: {POSITION}", start
        )
    return RefusedFilterError(f"{shown(written)} alone is not a condition: compare a path with it", start)


_ALWAYS = {
    words.OPEN_QUOTE: "a quote is still open",
    words.OPEN_MARK: "a brace is still open: marks are written a{id,val}",
    words.PARENT: f".. is not supported: {AXES['parent']}",
}


def _by_itself(word: str, kind: str, dialect: str) -> str | None:
    """Say why a word can stand nowhere."""
    if kind in _ALWAYS:
        return _ALWAYS[kind]
    if kind == words.OTHER_MARK:
        if dialect == TREE:
            return f"a mark of the tree notation begins with an underscore: write _{word}"
        return (
            f"{word} is a mark of the tree notation: write {word[1:]}, behind a space if the name ends with _"
        )
    if kind == words.EXPONENT:
        return f"{shown(word)} has an exponent: write the number with digits and a point"
    if kind == words.PREFIXED:
        at, name = ("@", word[1:]) if word[0] == "@" else ("", word)
        prefix, _, local = name.strip(words.GAPS).partition(":")
        return f"the prefix {prefix}: is not declared: write {at}Q{{namespace}}{local}, or {at}*:{local}"
    if kind == words.WILD:
        return f"all names of a namespace are not supported: write {'@*' if word[0] == '@' else '*'}"
    if kind == words.VARIABLE:
        return f"{shown(word)} is a variable, and filters have none: write the value"
    if kind == words.AXIS:
        axis = word[:-2].rstrip(words.GAPS)
        return f"{axis}:: is not supported: {AXES[axis]}" if axis in AXES else f"{shown(axis)}:: is no axis"
    if kind == words.FUNCTION:
        return _function(word[:-1].rstrip(words.GAPS))
    return SIGNS.get(word) if kind == words.UNKNOWN else None


def _function(name: str) -> str:
    if name in FUNCTIONS:
        return f"{name}() is not supported: {FUNCTIONS[name]}"
    if name in OPERATORS:
        return f"{name} is not supported: {OPERATORS[name]}"
    return f"{shown(name)}() is not supported: the functions are contains(), starts-with() and re:test()"


def _behind_path(word: str, kind: str, before: str, expected: set[str]) -> str | None:
    """Say why a word cannot go on where a condition could end: it is an operator, or another mark."""
    if kind == words.MARK:
        if before == words.MARK:
            return "a step has one mark: join them, as in a{id,val}"
        if before == "_END":
            return "a mark stands right behind the name, before the brackets: a{id}[b]"
        return "a mark stands behind the name of a step, as in [a{val} > 3]"
    if kind == "_MINUS" and "_MINUS" not in expected:
        return f"- is not supported: {OPERATORS['div']}"
    if before in _VALUES and kind in (*_SLASHES, "_BEGIN"):
        return f"{shown(word)} cannot go on behind a value: paths and brackets stand behind names"
    if before in _VALUES and kind in (words.NAME, words.VAL) and word in OPERATORS:
        return f"{word} is not supported: {OPERATORS[word]}"
    if words.AND not in expected and "_COMMA" not in expected:
        return None
    if kind in (words.NAME, words.VAL) and word in OPERATORS:
        return f"{word} is not supported: {OPERATORS[word]}"
    if kind in ("_RIGHT", words.AND) and "_COMMA" in expected:
        return _ARGUMENTS
    if kind == "_LEFT":
        return "parentheses cannot go on behind a path: join conditions by and"
    if kind in _COMPARISONS:
        if before == "_RIGHT":
            return "a condition is not compared: write it alone"
        return f"one comparison at a time: join two by and, as in [a > 1 and a {word} 5]"
    if before == "_RIGHT" and (kind in _SLASHES or kind == "_BEGIN"):
        return "a path cannot go on behind parentheses: write it without them"
    if kind == "_COMMA":
        return "',' is not supported: join paths by and"
    if kind in (words.NAME, words.VAL, words.ATTRIBUTE):
        if before == words.STRING:
            return f"{shown(word)} cannot stand here: a quote within a text is doubled, as in 'it''s'"
        return f"{shown(word)} cannot stand here: join conditions by and, steps by / or //"
    return None


def _compared(word: str, kind: str, before: str, expected: set[str]) -> str | None:
    """Say why two things cannot be compared."""
    if before not in _COMPARISONS:
        if before == "_MINUS" and kind != words.UNKNOWN:
            return f"- is not supported here: {OPERATORS['div']}"
        if before == "_COMMA" and kind in _PATHS:
            return f"{shown(word)} is a path: the second argument is a text in quotes"
        if kind in ("_LEFT", "_RIGHT", *_CALLS) and before in _CALLS:
            return _ARGUMENTS
        if kind in _VALUES and before in _CALLS:
            return f"{shown(word)} is no path: the first argument is a path, the second a text in quotes"
        return None
    if kind in _CALLS:
        return "a condition is not compared: write it alone"
    if kind == "_LEFT":
        return "parentheses in a comparison are not supported: compare a path with one value"
    if kind in _PATHS and words.STRING in expected:
        return f"{shown(word)} is a path, and paths are compared with a text in quotes or a number only"
    if (kind in _VALUES or kind == "_MINUS") and words.NAME in expected:
        return f"{shown(word)} is compared with another value: one side is a path"
    return None


def _elsewhere(word: str, kind: str, before: str) -> str | None:
    """Say why a word cannot stand in a path, or at the beginning of one."""
    if before == "_BEGIN" and kind == "_END":
        return "the brackets are empty: write a condition, such as [b] or [. = 'x']"
    if kind in _VALUES and before in _SLASHES:
        return f"{shown(word)} is no step: a step is a name, *, @name or text()"
    if kind == words.SELF and before in _SLASHES:
        return "'.' stands at the beginning of a path only: leave it out"
    if kind == "_LEFT" and (before in _SLASHES or before in _AXES or not before):
        return "parentheses in a path are not supported: write one path, or subscribe to each"
    if kind in _SLASHES and before in _SLASHES:
        return f"{word} stands behind {'another /' if before == 'SLASH' else '//'}: a name is between them"
    if kind in (words.ATTRIBUTE, words.TEXT_STEP) and before in _AXES:
        return f"{shown(word)} cannot stand behind an axis: leave the axis out"
    if kind == words.SELF and before == words.SELF:
        return "'.' stands at the beginning of a path only: leave it out"
    if kind == "_BEGIN" and before == words.SELF:
        return "brackets behind . are not supported: write them behind the name of the step"
    if kind == "_BEGIN" and before in _SLASHES:
        return "a step needs a name before its brackets: write * for any"
    if kind == words.UNKNOWN:
        return f"{shown(word)} is not part of the filter language"
    return None


def _wanted(expected: set[str]) -> str:
    """Write what could stand there, the commoner first."""
    if words.SELF in expected:
        return "expected a path or a condition" if words.STRING in expected else "expected a path"
    names = {_READABLE[kind] for kind in expected if kind in _READABLE}
    listed = sorted(names, key=_ORDER.index)
    shown_names = listed[:7]
    if len(listed) > len(shown_names):
        return f"expected {', '.join(shown_names)} or others"
    return f"expected {' or '.join(filter(None, (', '.join(shown_names[:-1]), shown_names[-1])))}"


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

_OPENING = {"_LEFT", "_BEGIN", "CONTAINS", "STARTS_WITH", "RE_TEST", "FUNCTION"}
_CLOSING = {"_RIGHT", "_END"}
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
        found = _NO_CHARACTER.search(text)
        if found:
            reason = f"U+{ord(found[0]):04X} is not a character of XML: no document has it"
            raise FilterError(reason, text, found.start())
    return text


def check_shape(kinds: Kinds) -> None:
    """Refuse a text by the number of its words, and by its nesting."""
    if len(kinds) > MAX_WORDS:
        raise RefusedFilterError(
            f"the filter has {len(kinds):,} words and at most {MAX_WORDS:,} are taken", MAX_WORDS
        )
    depth = 0
    for number, kind in enumerate(kinds):
        if kind in _OPENING:
            depth += 1
            if depth > MAX_DEPTH:
                raise RefusedFilterError(f"the filter nests deeper than {MAX_DEPTH}", number)
        elif kind in _CLOSING:
            depth = max(0, depth - 1)


def check_nodes(count: int, number: int) -> None:
    """Refuse more nodes than a pattern may have; `number` is the word of the last."""
    if count > MAX_NODES:
        raise RefusedFilterError(f"the filter has more than {MAX_NODES} steps", number)


def check_tests(count: int, number: int) -> None:
    """Refuse more tests than a node may have."""
    if count > MAX_TESTS:
        raise RefusedFilterError(f"a step has more than {MAX_TESTS} conditions on its value", number)
