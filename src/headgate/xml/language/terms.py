"""What single words mean: labels of steps, marks, literals."""

from __future__ import annotations

import re
from math import isinf

from headgate.core.subscription import XPATH
from headgate.xml.language.model import RETURNS, TEXT
from headgate.xml.language.words import ATTRIBUTE, GAPS, NAME, TEXT_STEP, XML_NAMESPACE, Remembered, kinds_of

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
            return f"{_shown(name)} is no mark: marks are {MARKS}"
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
label_of = Remembered(_label)
step_of = Remembered(_step)
returns_of = Remembered(_returns)
