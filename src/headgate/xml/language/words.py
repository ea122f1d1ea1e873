"""A filter's text in words: names, marks, literals, axes, functions and signs.

One regular expression cuts the text. A word holds all that decides what it is: a name goes with its namespace
or its @, an axis with its colons, a function with its opening parenthesis, a mark with its braces. So a
word's kind follows from the word itself; words such as `and` are names where a name is due.

At the end stands what single words mean: labels of steps, marks, literals.
"""

from __future__ import annotations

import re
from math import isinf

from headgate.core.subscription import TREE, XPATH
from headgate.core.text.cutting import BoundedCache, Cutter
from headgate.xml.language.model import RETURNS, TEXT

NAME, ATTRIBUTE, TEXT_STEP = "name", "attribute", "text()"
"""Steps; a name may have its namespace, or be * or *:name."""
AXIS, FUNCTION, MARK, STRING, NUMBER = "axis", "function", "mark", "text", "number"
WILD, PREFIXED = "wild", "prefixed"
"""All names of one namespace, and a name whose prefix is not declared."""
OTHER_MARK, OPEN_MARK, OPEN_QUOTE = "mark of the other dialect", "open mark", "open quote"
EXPONENT, VARIABLE, SIGN, UNKNOWN = "exponent", "variable", "sign", "unknown"

SIGNS = frozenset(("/", "//", "[", "]", "(", ")", ",", "=", "!=", "<", "<=", ">", ">=", "-", ".", ".."))
XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"
"""The only prefix that XML declares itself is xml: for this."""
GAPS = " \t\r\n"
END = "\0"
"""Stands behind the last word; no filter has it."""

_FIRST = (
    r"A-Za-z\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u02FF\u0370-\u037D\u037F-\u1FFF\u200C\u200D\u2070-\u218F"
    r"\u2C00-\u2FEF\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD\U00010000-\U000EFFFF"
)
_LATER = rf"{_FIRST}\-.0-9\u00B7\u0300-\u036F\u203F\u2040"
# A name ends before _{, which begins a mark of the tree notation. Possessive: nothing is tried twice.
_NAME = rf"(?:[{_FIRST}]|_(?!\{{))(?:[{_LATER}]++|_(?!\{{))*+"
_GAP = rf"[{GAPS}]*+"
_NODE = rf"Q\{{[^{{}}]*+\}}(?:{_NAME}|\*) | \*:{_NAME} | \*"
# What is usual stands first: it is found sooner, and is the same.
_WORD = re.compile(
    rf"""(
        //? | [\[\],)]
      | @?(?!Q\{{)[A-Za-z][A-Za-z0-9]*+(?=[\[\]/{{]) | [<>=](?![=>])
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


_CUTTER = Cutter(_START, _WORD)
cut, places = _CUTTER.cut, _CUTTER.places
"""Of what is no word, a quote or a brace without an end is cut in one."""


def kind_of(word: str, dialect: str = XPATH) -> str:
    """Tell the kind of a word.

    >>> [kind_of(word) for word in ("and", "*:a", "@dc:x", "child ::", "{id}", "1e3", "~")]
    ['name', 'name', 'prefixed', 'axis', 'mark', 'exponent', 'unknown']
    """
    if word in SIGNS:
        return SIGN
    first, last = word[0], word[-1]
    if first in "\"'":
        return OPEN_QUOTE if is_open(word) else STRING
    if first == "{" or word.startswith("_{"):
        return OPEN_MARK if last != "}" else MARK if (first == "_") == (dialect == TREE) else OTHER_MARK
    if first in "0123456789" or (first == "." and len(word) > 1):
        return EXPONENT if "e" in word.lower() else NUMBER
    if first == "@" and len(word) > 1:
        kind = kind_of(word[1:].lstrip(GAPS), dialect)
        return kind if kind in (PREFIXED, WILD) else ATTRIBUTE
    if first == "$":
        return VARIABLE
    if first == "*":
        return NAME
    return _lettered(word) if _LETTER.match(word) else UNKNOWN


def _lettered(word: str) -> str:
    """Tell the kind of a word that begins with a letter."""
    if word.startswith("Q{"):
        return WILD if word[-1] == "*" else NAME
    if word.endswith("::"):
        return AXIS
    if word.endswith(")"):
        return TEXT_STEP
    if word.endswith("("):
        return FUNCTION
    prefix, colon, local = word.partition(":")
    return NAME if not colon else WILD if local == "*" else NAME if prefix == "xml" else PREFIXED


def is_open(word: str) -> bool:
    """Tell whether a word that begins with a quote lacks the other."""
    return word.count(word[0]) % 2 == 1


def name_in(word: str) -> str:
    """Return the name of a function or an axis, without what ends the word.

    >>> name_in("contains ("), name_in("child::")
    ('contains', 'child')
    """
    return word.rstrip("(:").rstrip(GAPS)


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
        return f"{{{uri}}}{local}" if uri or local == "*" else local
    return f"{{{XML_NAMESPACE}}}{word[4:]}" if word.startswith("xml:") else word


def _step(word: str) -> str:
    """Tell the label of a word that is a step by itself; of any other, nothing.

    >>> [step_of[word] for word in ("a", "and", "child::", "[", "dc:title")]
    ['a', 'and', '', '', '']
    """
    return label_of[word] if word and kind_of(word) in _STEPS else ""


def _returns(word: str) -> tuple[str, ...] | str:
    """Tell what a mark returns; a text says why it is none.

    >>> returns_of["{cont, id}"], returns_of["_{ID}"], returns_of["{}"], returns_of["{id,id}"]
    (('id', 'cont'), ('id',), (), 'id is marked twice')
    """
    if word[-1] != "}":
        return "a brace is still open: marks are written a{id,val}"
    inside = word.lstrip("_")[1:-1].strip(GAPS)
    names = [each.strip(GAPS).lower() for each in inside.split(",")] if inside else []
    for index, name in enumerate(names):
        if name not in RETURNS:
            return f"{_shown(name)} is not a mark: marks are {MARKS}"
        if name in names[:index]:
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
