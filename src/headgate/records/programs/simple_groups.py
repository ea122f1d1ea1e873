"""The commonest conditions of importers by their pieces, from which leaves are written without the model.

A system whose arrays stand for their elements asks of a value and of elements alike:

    (a = 'x' OR array_contains(a, 'x'))
    (a IN ('x', '1') AND a >= '' OR arrays_overlap(a, array('x', '1')))
    (a >= 5 AND a < 7 AND typeof(a) <> 'string' OR exists(a, x -> x >= 5 AND x < 7 AND typeof(x) <> 'string'))
    (a LIKE 'x%' OR exists(a, x -> typeof(x) = 'string' AND x LIKE 'x%'))
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from headgate.records.programs.intervals import before
from headgate.records.programs.leaves import Facet, Quantifier, SetLeaf, element_leaf, value_leaf
from headgate.records.programs.lowering import after_prefix
from headgate.records.programs.shapes import path_of
from headgate.records.programs.simple_clauses import FACETS, SimpleClause, compare, is_plain

if TYPE_CHECKING:
    from headgate.core.values import Path

_NAME = r"(?P<name>(?>(?:[A-Za-z_]\w*|`[^`]+`)(?:\.(?:[A-Za-z_]\w*|`[^`]+`))*))"
_TEXTS = r"'[^'\\\ud800-\udfff]*+'(?:, '[^'\\\ud800-\udfff]*+')*+"
_FORM = re.compile(
    rf"\({_NAME} (?:"
    rf"(?:= (?P<one>'[^'\\\ud800-\udfff]*+')|IN \((?P<some>{_TEXTS})\))(?P<text> AND (?P=name) >= '')?"
    r" OR array(?:_contains\((?P=name), (?P=one)\)|s_overlap\((?P=name), array\((?P=some)\)\))"
    r"|(?P<sign>[<>]=?|=) (?P<number>[0-9]{1,15})(?: AND (?P=name) (?P<other><=?) (?P<high>[0-9]{1,15}))?"
    r" AND typeof\((?P=name)\) <> 'string'"
    r" OR exists\((?P=name), x -> (?P<body>[^()']*)typeof\(x\) <> 'string'\)"
    r"|LIKE '(?P<prefix>[^'\\%_\ud800-\udfff]++)%'"
    r" OR exists\((?P=name), x -> typeof\(x\) = 'string' AND x LIKE '(?P=prefix)%'\)"
    r")\)",
    # What is the same in both halves is so in the case of its letters, too.
    re.ASCII,
)
_STRINGS = re.compile(r"'([^']*)'")
_OF_NUMBERS = [at for at, facet in enumerate(FACETS) if facet != Facet.STRING_INT]
_NUMBERS = bytes(FACETS[at] for at in _OF_NUMBERS)


class SimpleGroup(NamedTuple):
    """A condition on a value or an element.

    value     the leaf of the value
    element   that of elements, if it is not the same, of an array
    last      whether the leaf of the value comes last
    """

    value: SimpleClause | SetLeaf
    element: SetLeaf | None
    last: bool


def read_group(text: str) -> SimpleGroup | None:
    """Take a condition apart if it is one of the commonest; else return None."""
    pieces = _FORM.fullmatch(text)
    if pieces is None:
        return None
    path = path_of[pieces["name"]]
    if path is None:
        return None
    if pieces["number"] is not None:
        return _numbers(pieces, path)
    if pieces["prefix"] is not None:
        return _prefix(pieces["prefix"], path)
    listed = pieces["some"] or pieces["one"]
    texts = _STRINGS.findall(listed)
    guarded = pieces["text"] is not None
    # A list is compared on the facets that all its literals have, so one plain text is enough.
    if not guarded and not any(map(is_plain.__getitem__, texts)):
        return None
    return SimpleGroup(SimpleClause(path, sorted(set(texts)), False, b"", (), (), 0), None, guarded)


def _prefix(prefix: str, path: Path) -> SimpleGroup:
    interval = (before(prefix), after_prefix(prefix))
    value = value_leaf(path, {Facet.TEXT: (interval,)})
    return SimpleGroup(value, element_leaf(path, Quantifier.ANY, {Facet.STRING: (interval,)}), False)


def _numbers(pieces: re.Match[str], path: Path) -> SimpleGroup | None:
    sign, other = pieces["sign"], pieces["other"] or ""
    asked = f"x {sign} {pieces['number']} AND " + (f"x {other} {pieces['high']} AND " if other else "")
    if pieces["body"] != asked or (other and sign[0] != ">"):
        return None
    ends = [compare(path, sign, int(pieces["number"]), negated=False)]
    if other:
        ends.append(compare(path, other, int(pieces["high"]), negated=False))
    lows = tuple(max(each.lows[at] for each in ends) for at in _OF_NUMBERS)
    highs = tuple(min(each.highs[at] for each in ends) for at in _OF_NUMBERS)
    if any(first > last for first, last in zip(lows, highs, strict=True)):
        return None
    value = SimpleClause(path, None, False, _NUMBERS, lows, highs, 0)
    return SimpleGroup(value, None, True)
