"""The text of a filter cut into clauses and what joins them, without a parser.

    age > 30 AND (topic IN ('news', 'art') OR NOT vip)

    clauses   age > 30   topic IN ('news', 'art')   vip
    joints    ␀ AND (␀ OR NOT ␀)

A clause is a predicate in one of the plain forms below; ␀ stands where one was. Few texts differ in their
joints, so these are parsed once (`skeletons`); a clause is made from its pieces (`clauses`). What is not
plain (comments, backticks, double quotes, backslashes, suffixes, exponents, NULL among literals, other
functions, literals on the left) stays in the joints, where nothing but AND, OR, NOT, parentheses and blanks
is taken. Then the parser reads the whole text.

A name is plain if the parser takes it for nothing but an attribute, wherever a clause may have one. The
parser knows hundreds of words, and treats some of them in a way of its own before certain others. So a name
is asked about once, in every form of a clause, and the answer is remembered.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from headgate.errors import FilterError
from headgate.records.language.model import And, Attribute, Constant, Expression, Not, Or, predicates
from headgate.records.language.parse import parse_filter

if TYPE_CHECKING:
    from headgate.core.values import Path


K = TypeVar("K")
V = TypeVar("V")


class Bounded(dict[K, V]):
    """Answers worth remembering, at most `limit` of them; when it is full it starts anew.

    Reading is a plain dictionary's, and threads may share one: an answer that is lost is found again.

    >>> squares = Bounded[int, int](2)
    >>> for number in range(5):
    ...     squares[number] = number * number
    >>> squares
    {4: 16}
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def __setitem__(self, key: K, value: V) -> None:
        """Remember an answer."""
        if len(self) >= self.limit:
            self.clear()
        super().__setitem__(key, value)


MAX_TEXT = 16_384
"""Longer texts go to the parser. Shorter ones have too few commas and clauses to break its limits."""
SLOT = "\0"

_B = r"[ \t\n\r]"
_NAME = r"(?>[a-z_]\w{0,63}(?:\.[a-z_]\w{0,63}){0,7})"
# No escapes to read, and no lone surrogates, which UTF-8 cannot carry.
_STRING = r"'[^'\\\ud800-\udfff]*+'"
# So few digits are within 64 bits, and within all limits for decimals. `=-` and `<-` are left to the parser.
_NUMBER = r"(?:(?<=[ \t\n\r(,])-)?[0-9]{1,18}(?:\.[0-9]{1,15})?"
_LITERAL = rf"(?:{_STRING}|{_NUMBER}|TRUE|FALSE|(?:DATE|TIMESTAMP){_B}*{_STRING})"
_LIST = rf"(?:{_STRING}(?:{_B}*,{_B}*{_STRING})*+|{_NUMBER}(?:{_B}*,{_B}*{_NUMBER})*+)"
_FORMS = (
    rf"(?P<name>{_NAME})(?:"
    rf"{_B}*(?P<op><=>|<>|[<>]=?|!=|==?){_B}*(?P<literal>{_LITERAL})"
    rf"|{_B}+(?P<negated>NOT{_B}+)?(?:"
    rf"IN{_B}*\({_B}*(?P<list>{_LIST}){_B}*\)"
    rf"|BETWEEN{_B}+(?P<low>{_LITERAL}){_B}+AND{_B}+(?P<high>{_LITERAL})"
    rf"|LIKE{_B}+(?P<pattern>{_STRING}))"
    rf"|{_B}+IS{_B}+(?P<present>NOT{_B}+)?(?P<null>NULL)"
    rf"|(?P<truth>(?={_B}*(?:\)|\Z|(?:AND|OR)\b))))"
    rf"|array_contains{_B}*\({_B}*(?P<array>{_NAME}){_B}*,{_B}*(?P<element>{_LITERAL}){_B}*\)"
    rf"|arrays_overlap{_B}*\({_B}*(?P<other>{_NAME}){_B}*,{_B}*array{_B}*\({_B}*(?P<elements>{_LIST}){_B}*\){_B}*\)"
)
# Without the flag for ASCII, case folding would take K (U+212A) for a letter of a name.
_FLAGS = re.ASCII | re.IGNORECASE
CLAUSE = re.compile(_FORMS, _FLAGS)
"""One clause, with its pieces as groups; for `fullmatch`."""
_PLAIN = re.sub(r"\?P<\w+>", "?:", _FORMS)
_CLAUSES = re.compile(rf"(?<![\w.])((?:{_PLAIN})(?=[ \t\n\r)]|\Z))", _FLAGS)
JOINTS = re.compile(
    rf"(?:[ \t\n\r(!]|NOT\b)*{SLOT}(?:[ \t\n\r)]*(?:AND|OR)(?:[ \t\n\r(!]|NOT\b)*{SLOT})*[ \t\n\r)]*", _FLAGS
)
"""Joints that `skeletons` may ask the parser about; for `fullmatch`."""

cut = _CLAUSES.split
"""Cut a text: joints at the even places, clauses at the odd ones.

>>> cut("a = 1 AND (b LIKE 'x%' OR NOT c)")
['', 'a = 1', ' AND (', "b LIKE 'x%'", ' OR NOT ', 'c', ')']
"""


MAX_NAMES = 65_536

_PROBE = " AND ".join(
    (
        "{0}",
        "NOT {0}",
        "!{0}",
        "({0} OR\n{0}\tOR ({0}))",
        "{0} = 1",
        "({0}=1)",
        "{0} == 'x'",
        "{0}!=1",
        "{0} <> 1.5",
        "{0} < 1",
        "{0}<1",
        "NOT {0} > -1",
        "{0}>'x'",
        "{0} <= TRUE",
        "{0}>= DATE '2024-01-01'",
        "{0} <=> TIMESTAMP '2024-01-01'",
        "{0} IN (1, 2)",
        "{0} IN('x')",
        "{0} NOT IN (1.5)",
        "{0} BETWEEN 1 AND 2",
        "{0} NOT BETWEEN 'x' AND 'y'",
        "{0} LIKE 'x'",
        "{0} NOT LIKE 'x'",
        "{0} IS NULL",
        "{0} IS NOT NULL",
        "array_contains({0}, 1)",
        "array_contains( {0} ,'x')",
        "arrays_overlap({0}, array('x'))",
        "{0}",
    )
)
_ANY_NAME = "headgate_attribute"

paths: Bounded[str, Path | None] = Bounded(MAX_NAMES)
sighted: Bounded[str, bool] = Bounded(MAX_NAMES)


def path_of(name: str) -> Path | None:
    """Return the folded path of a dotted name that is safe in every clause, else None.

    A name is asked about when it comes for the second time: the answer takes as long as some filters do.
    """
    if name in paths:
        return paths.get(name)
    if name not in sighted:
        sighted[name] = True
        return None
    found = Attribute.of(*name.split(".")).path if is_safe(name) else None
    paths[name] = found
    return found


def is_safe(name: str) -> bool:
    """Ask the parser about a name."""
    parts = tuple(name.split("."))
    try:
        found = parse_filter(_PROBE.format(name))
    except FilterError:
        return False
    if any(predicate.attribute.names != parts for predicate in predicates(found)):
        return False
    return _renamed(found) == parse_filter(_PROBE.format(_ANY_NAME))


def _renamed(node: Expression) -> Expression:
    if isinstance(node, And | Or):
        return type(node)(tuple(map(_renamed, node.children)))
    if isinstance(node, Not):
        return Not(_renamed(node.child))
    return node if isinstance(node, Constant) else replace(node, attribute=Attribute.of(_ANY_NAME))
