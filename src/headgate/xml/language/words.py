"""A filter's text in words: names, marks, literals, axes, functions and signs.

One regular expression cuts the text. A word holds all that decides what it is: a name goes with its namespace
or its @, an axis with its colons, a function with its opening parenthesis, a mark with its braces. So a
word's kind follows from the word itself, but for `and`, which is a name where a name is due. Kinds are the
terminals of the grammar, which drops those that begin with an underscore from its trees.

At the end stands what single words mean: labels of steps, marks, literals.
"""

from __future__ import annotations

import re
from functools import partial
from math import isinf
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from headgate.core.subscription import TREE, XPATH
from headgate.xml.language.model import RETURNS, TEXT

if TYPE_CHECKING:
    from collections.abc import Callable


T = TypeVar("T")

NAME = "NAME"
"""A name, with its namespace, or * or *:name."""
ATTRIBUTE = "ATTRIBUTE"
TEXT_STEP = "TEXT"
VAL = "VAL"
"""The name val in the tree notation, which also stands for what . does in XPath."""
MARK = "MARK"
STRING = "STRING"
NUMBER = "NUMBER"
SELF = "SELF"
CHILD_AXIS = "CHILD_AXIS"
DESCENDANT_AXIS = "DESCENDANT_AXIS"
ATTRIBUTE_AXIS = "ATTRIBUTE_AXIS"
AND = "_AND"

# Those that no rule of the grammar has: each is refused for what it is.
OTHER_MARK = "OTHER_MARK"
"""A mark of the other dialect."""
OPEN_MARK = "OPEN_MARK"
OPEN_QUOTE = "OPEN_QUOTE"
EXPONENT = "EXPONENT"
PREFIXED = "PREFIXED"
WILD = "WILD"
"""All names of one namespace."""
AXIS = "AXIS"
FUNCTION = "FUNCTION"
VARIABLE = "VARIABLE"
PARENT = "PARENT"
UNKNOWN = "UNKNOWN"

Kinds: TypeAlias = tuple[str, ...]

SIGNS = {
    "/": "SLASH",
    "//": "DOUBLE",
    "[": "_BEGIN",
    "]": "_END",
    "(": "_LEFT",
    ")": "_RIGHT",
    ",": "_COMMA",
    "=": "EQ",
    "!=": "NE",
    "<": "LT",
    "<=": "LE",
    ">": "GT",
    ">=": "GE",
    "-": "_MINUS",
    ".": SELF,
    "..": PARENT,
}
FUNCTIONS = {"contains": "CONTAINS", "starts-with": "STARTS_WITH", "re:test": "RE_TEST"}
"""`re:` is the prefix that EXSLT has for its regular expressions, and needs no declaration."""
AXES = {"child": CHILD_AXIS, "descendant": DESCENDANT_AXIS, "attribute": ATTRIBUTE_AXIS}
XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"
"""The only prefix that XML declares itself is xml: for this."""
GAPS = " \t\r\n"

_FIRST = (
    r"A-Za-z\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u02FF\u0370-\u037D\u037F-\u1FFF\u200C\u200D\u2070-\u218F"
    r"\u2C00-\u2FEF\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD\U00010000-\U000EFFFF"
)
_LATER = rf"{_FIRST}\-.0-9\u00B7\u0300-\u036F\u203F\u2040"
# A name ends before _{, which begins a mark of the tree notation. Possessive: nothing is tried twice.
_NAME = rf"(?:[{_FIRST}]|_(?!\{{))(?:[{_LATER}]++|_(?!\{{))*+"
_GAP = rf"[{GAPS}]*+"
_NODE = rf"Q\{{[^{{}}]*+\}}(?:{_NAME}|\*) | \*:{_NAME} | \*"
_WORD = re.compile(
    rf"""(
        //? | [\[\],)]
      | (?:{_NODE})
      | (?:and|or|div|mod)(?={_GAP}\()
      | text{_GAP}\({_GAP}\)
      | re:test{_GAP}\((?!:)
      | {_NAME}(?: {_GAP}::(?!:) | :(?:{_NAME}|\*) | {_GAP}\((?!:) )?+
      | @{_GAP}(?:{_NODE} | {_NAME}(?::(?:{_NAME}|\*))?+)
      | _?\{{[^{{}}]*+\}}
      | (?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+
      | '[^']*+(?:''[^']*+)*+' | "[^"]*+(?:""[^"]*+)*+"
      | ["'].*+ | _?\{{.*+
      | \.\. | [!<>=]= | <> | && | \|\| | \(: | :: | \$(?:{_NAME})?+
      | .
    ){_GAP}""",
    re.VERBOSE | re.DOTALL,
)
_START = re.compile(_GAP)
_LETTER = re.compile(rf"[{_FIRST}_]")
OPERANDS = frozenset(
    (NAME, ATTRIBUTE, TEXT_STEP, VAL, MARK, OTHER_MARK, STRING, NUMBER, SELF, "_RIGHT", "_END", PARENT)
)
"""Behind these `and` joins, and / goes on."""


def cut(text: str) -> list[str]:
    """Cut a text into words; of what is none, a quote or a brace without an end is cut in one.

    >>> cut("//news[@id = 'x']/author {val} and //Q{urn:x}b")
    ['//', 'news', '[', '@id', '=', "'x'", ']', '/', 'author', '{val}', 'and', '//', 'Q{urn:x}b']
    """
    return _WORD.findall(text, _begin(text))


def places(text: str) -> list[int]:
    """List where the words begin, and the end of the text."""
    return [found.start() for found in _WORD.finditer(text, _begin(text))] + [len(text)]


def kinds_of(words: list[str], dialect: str) -> Kinds:
    """List the kinds of words; `and` joins behind what can be joined, and is a name elsewhere.

    >>> kinds_of(cut("//and and //b"), "xpath")
    ('DOUBLE', 'NAME', '_AND', 'DOUBLE', 'NAME')
    """
    known = _KINDS[dialect]
    kinds = [known[word] for word in words]
    if AND in kinds:
        for number, kind in enumerate(kinds):
            if kind == AND and (number == 0 or kinds[number - 1] not in OPERANDS):
                kinds[number] = NAME
    return tuple(kinds)


def _begin(text: str) -> int:
    found = _START.match(text)
    return found.end() if found else 0


class BoundedCache(dict[str, T]):
    """What words mean that were seen, so long as there are not too many and they are short."""

    def __init__(self, meaning: Callable[[str], T]) -> None:
        super().__init__()
        self._meaning = meaning

    def __missing__(self, word: str) -> T:
        found = self._meaning(word)
        if len(word) <= _MAX_LETTERS:
            if len(self) >= _MAX_WORDS:
                self.clear()
            self[word] = found
        return found


def _kind(word: str, dialect: str) -> str:
    if word in SIGNS:
        return SIGNS[word]
    first, last = word[0], word[-1]
    if first in "\"'":
        return STRING if _QUOTED.fullmatch(word) else OPEN_QUOTE
    if first == "{" or word.startswith("_{"):
        return OPEN_MARK if last != "}" else MARK if (first == "_") == (dialect == TREE) else OTHER_MARK
    if first in "0123456789" or (first == "." and len(word) > 1):
        return EXPONENT if "e" in word.lower() else NUMBER
    if first == "@" and len(word) > 1:
        kind = _kind(word[1:].lstrip(GAPS), dialect)
        return kind if kind in (PREFIXED, WILD) else ATTRIBUTE
    if first == "$":
        return VARIABLE
    if first == "*":
        return NAME
    if not _LETTER.match(word):
        return UNKNOWN
    return _lettered(word, dialect)


def _lettered(word: str, dialect: str) -> str:
    """Tell the kind of a word that begins with a letter."""
    if word.startswith("Q{"):
        return WILD if word[-1] == "*" else NAME
    if word.endswith("::"):
        return AXES.get(word[:-2].rstrip(GAPS), AXIS)
    if word.endswith(")"):
        return TEXT_STEP
    if word.endswith("("):
        return FUNCTIONS.get(word[:-1].rstrip(GAPS), FUNCTION)
    prefix, colon, local = word.partition(":")
    if colon:
        return WILD if local == "*" else NAME if prefix == "xml" else PREFIXED
    if word == "and":
        return AND
    return VAL if word == "val" and dialect == TREE else NAME


_MAX_WORDS = 65_536
_MAX_LETTERS = 64
_QUOTED = re.compile(r"""'[^']*+(?:''[^']*+)*+'|"[^"]*+(?:""[^"]*+)*+\"""")
_KINDS = {dialect: BoundedCache(partial(_kind, dialect=dialect)) for dialect in (XPATH, TREE)}


MARKS = "id, val and cont"


def _label(word: str) -> str:
    """Tell the label of a word that is a name, an attribute or text().

    >>> [label_of[word] for word in ("a", "Q{urn:x}a", "@ *:a", "@xml:lang", "text ( )")]
    ['a', '{urn:x}a', '@*:a', '@{http://www.w3.org/XML/1998/namespace}lang', 'text()']
    """
    if word[0] == "@":
        return f"@{_label(word[1:].lstrip(GAPS))}"
    if word[-1] == ")":
        return TEXT
    if word.startswith("Q{"):
        uri, _, local = word[2:].rpartition("}")
        uri = " ".join(re.findall(rf"[^{GAPS}]+", uri))
        return f"{{{uri}}}{local}" if uri else local
    return f"{{{XML_NAMESPACE}}}{word[4:]}" if word.startswith("xml:") else word


def _step(word: str) -> str:
    """Tell the label of a word that is a step by itself; of any other, nothing.

    >>> [step_of[word] for word in ("a", "and", "child::", "[", "dc:title")]
    ['a', 'and', '', '', '']
    """
    return label_of[word] if word and kinds_of([word], XPATH)[0] in _STEPS else ""


def _returns(word: str) -> tuple[str, ...] | str:
    """Tell what a mark returns; a text says why it is none.

    >>> returns_of["{cont, id}"], returns_of["_{ID}"], returns_of["{}"], returns_of["{id,id}"]
    (('id', 'cont'), ('id',), (), 'id is marked twice')
    """
    if word[-1] != "}":
        return "a brace is still open"
    inside = word.lstrip("_")[1:-1].strip(GAPS)
    names = [each.strip(GAPS).lower() for each in inside.split(",")] if inside else []
    for place, name in enumerate(names):
        if name not in RETURNS:
            return f"{_shown(name)} is not a mark: marks are {MARKS}"
        if name in names[:place]:
            return f"{name} is marked twice"
    return tuple(each for each in RETURNS if each in names)


def text_of(word: str) -> str:
    """Take a text out of its quotes; within them the same quote is doubled.

    >>> text_of("'it''s'")
    "it's"
    """
    quote = word[0]
    return word[1:-1].replace(quote * 2, quote)


def number_of(word: str, *, negative: bool) -> float | None:
    """Read a number; None if it is too large to be one.

    >>> number_of("2.50", negative=True), number_of(".5", negative=False), number_of("0", negative=True)
    (-2.5, 0.5, 0.0)
    """
    value = float(word)
    if isinf(value):
        return None
    return 0.0 - value if negative else value


def _shown(name: str) -> str:
    return repr(name) if len(name) <= 40 else f"{name[:39]!r}…"


_STEPS = (NAME, ATTRIBUTE, TEXT_STEP)
label_of = BoundedCache(_label)
step_of = BoundedCache(_step)
returns_of = BoundedCache(_returns)
