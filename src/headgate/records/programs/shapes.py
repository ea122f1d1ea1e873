"""The text of a filter cut into clauses and what joins them, without a parser.

    age > 30 AND (topic IN ('news', 'art') OR NOT vip)

    clauses   age > 30   topic IN ('news', 'art')   vip
    joints    ␀ AND (␀ OR NOT ␀)

A clause is a predicate in one of the plain forms below; ␀ stands where one was. Few texts differ in their
joints, so these are parsed once; a clause is made from its pieces (`clauses`). What is not plain (comments,
double quotes, backslashes, suffixes, exponents, NULL among literals, other functions, literals on the left)
stays in the joints, where nothing but AND, OR, NOT, parentheses and blanks is taken. Then the parser reads
the whole text.

The parser reads the joints with a bare attribute in every slot. A predicate binds tighter than NOT, AND and
OR, and stands between these, parentheses and the ends of the text; so the tree is that of any filter with
the same joints, with the clauses in place of the attributes.

A name is plain unless it begins with one of the few words that are none without backticks.
"""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from headgate.core.text.cutting import BoundedCache
from headgate.errors import FilterError
from headgate.records.language.lexing import BARE_FUNCTIONS, RESERVED
from headgate.records.language.limits import MAX_NAME_PARTS
from headgate.records.language.model import And, Attribute, Expression, Not, Or, Truth
from headgate.records.language.rewrite import normalise
from headgate.records.programs.cutting import cut_clauses
from headgate.records.programs.program import compile_program
from headgate.records.programs.tokens import AND, OR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from headgate.core.values import Path


MAX_TEXT = 16_384
"""Longer texts go to the parser. Shorter ones have too few commas and clauses to break its limits."""
SLOT = "\0"

_B = r"[ \t\n\r]"
# Marks may stand before a name in backticks, see `records/names.py`.
_PART = r"(?:[a-z_]\w{0,63}|`(?:[\x01-\x03]?[ -_a-~]{1,64}|\x04)`)"
_NAME = rf"(?>{_PART}(?:\.{_PART}){{0,7}})"
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
    rf"|(?P<folded>I)?LIKE{_B}+(?P<pattern>{_STRING})"
    rf"|RLIKE{_B}+'\(\?i\)\\\\b(?P<word>[a-z0-9_]+)\\\\b')"
    rf"|{_B}+IS{_B}+(?P<present>NOT{_B}+)?(?P<null>NULL)"
    rf"|(?P<truth>(?={_B}*(?:\)|\Z|(?:AND|OR)\b))))"
    rf"|array_contains{_B}*\({_B}*(?P<array>{_NAME}){_B}*,{_B}*(?P<element>{_LITERAL}){_B}*\)"
    rf"|arrays_overlap{_B}*\({_B}*(?P<other>{_NAME}){_B}*,{_B}*array{_B}*\({_B}*(?P<elements>{_LIST}){_B}*\){_B}*\)"
)
# Without the flag for ASCII, case folding would take K (U+212A) for a letter of a name.
_FLAGS = re.ASCII | re.IGNORECASE
_PARTS = re.compile(r"`([^`]*)`|([^.`]+)")
_DOTTED = re.compile(r"(?:[a-z_]\w*|`[^`\ud800-\udfff]+`)(?:\.(?:[a-z_]\w*|`[^`\ud800-\udfff]+`))*", _FLAGS)
CLAUSE = re.compile(_FORMS, _FLAGS)
"""One clause, with its pieces as groups; for `fullmatch`."""
_PLAIN = re.sub(r"\?P<\w+>", "?:", _FORMS)
_CLAUSES = re.compile(rf"(?<![\w.])((?:{_PLAIN})(?=[ \t\n\r)]|\Z))", _FLAGS)
JOINTS = re.compile(
    rf"(?:[ \t\n\r(!]|NOT\b)*{SLOT}(?:[ \t\n\r)]*(?:AND|OR)(?:[ \t\n\r(!]|NOT\b)*{SLOT})*[ \t\n\r)]*", _FLAGS
)
"""Joints that the parser may be asked about; for `fullmatch`."""

cut = _CLAUSES.split
"""Cut a text: joints at the even places, clauses at the odd ones.

>>> cut("a = 1 AND (b LIKE 'x%' OR NOT c)")
['', 'a = 1', ' AND (', "b LIKE 'x%'", ' OR NOT ', 'c', ')']
"""


NO_NAMES = RESERVED | BARE_FUNCTIONS


def _path_of(name: str) -> Path | None:
    """Return the folded path of a dotted name; None if it begins with a word that is no name.

    >>> path_of["User.`a.b`"], path_of["user.case"], path_of["case.user"]
    (('user', 'a.b'), ('user', 'case'), None)
    """
    parts = parts_of(name)
    named = name[0] == "`" or parts[0].lower() not in NO_NAMES
    sound = len(parts) <= MAX_NAME_PARTS and _DOTTED.fullmatch(name)
    return Attribute.of(*parts).path if named and sound else None


path_of = BoundedCache(_path_of, longest=512)


def parts_of(name: str) -> tuple[str, ...]:
    """Take a dotted name apart; a part in backticks may have dots of its own.

    >>> parts_of("detail.`a.b`.c")
    ('detail', 'a.b', 'c')
    """
    if "`" not in name:
        return tuple(name.split("."))
    return tuple(plain or quoted for quoted, plain in _PARTS.findall(name))


_MAX_SKELETONS = 4_096
_MAX_LENGTH = 1_024
_MAX_NESTING = 16
_MAX_RUN = 8
"""Parentheses within each other, and NOTs in a row: far from the limits of the parser, since clauses have
parentheses and widths of their own."""

_RUN = re.compile(rf"(?:(?:NOT\b|!)[ \t\n\r]*){{{_MAX_RUN + 1}}}", re.IGNORECASE)
_SLOT_NAME = "headgate_slot_{}"


class Role(NamedTuple):
    """What a clause is among its neighbours: joined to them by AND or OR, itself or its negation."""

    sign: int
    negated: bool


class Skeleton(NamedTuple):
    """A filter without its clauses.

    tree      the model, with Truth of `_SLOT_NAME` in the slots
    roles     of the slots, after NOT has moved down
    uniform   the one role of all slots, if there is one
    groups    the slots that one AND or OR joins directly; those of each
    tokens    the program, over leaves in the order of their first push
    order     the slot of each of these leaves
    fill      picks the tokens out of (leaf of slot 0, leaf of slot 1, …, AND, OR)
    """

    tree: Expression
    roles: tuple[Role, ...]
    uniform: Role | None
    groups: tuple[tuple[int, ...], ...]
    tokens: tuple[int, ...]
    order: tuple[int, ...]
    fill: Callable[[Sequence[int]], tuple[int, ...]]

    @property
    def slots(self) -> int:
        """Count the clauses."""
        return len(self.roles)

    def bind(self, clauses: Sequence[Expression]) -> Expression:
        """Put clauses into the slots."""
        return _bind(self.tree, dict(zip(_paths(len(clauses)), clauses, strict=True)))


_GLUED = -1
"""The slot of a name that is none, because nothing stood between a slot and the next word."""


def find_skeleton(joints: str) -> Skeleton | None:
    """Return the skeleton of the joints, or None if the parser must read each text that has them."""
    # Others are not remembered: whatever is no clause is in there, so there is no end of such joints.
    return skeletons[joints] if joints in skeletons or JOINTS.fullmatch(joints) else None


class Shape(NamedTuple):
    """A skeleton, the texts of the clauses for its slots, and what stands between them."""

    skeleton: Skeleton
    clauses: list[str]
    joints: list[str]


def find_shape(text: str) -> Shape | None:
    """Cut a text into clauses; None if its joints are for the parser to read."""
    if len(text) > MAX_TEXT:
        return None
    parts = cut(text)
    skeleton = find_skeleton(SLOT.join(parts[::2]))
    if skeleton is None:
        cut_parts = cut_clauses(text)
        if cut_parts is None:
            return None
        parts = cut_parts
        skeleton = find_skeleton(SLOT.join(parts[::2]))
    # A text may hold the sign that marks the slots.
    if skeleton is None or 2 * skeleton.slots + 1 != len(parts):
        return None
    return Shape(skeleton, parts[1::2], parts[::2])


_INNER = r"(?:[^()'`\"\\-]|-(?!-)|'[^'\\]*+'|`[ -_a-~]{1,64}`)"
_IN_GROUP = _INNER
for _ in range(4):
    _IN_GROUP = rf"(?:{_INNER}|\({_IN_GROUP}*+\))"
_GROUP = re.compile(
    rf"(\({_IN_GROUP}*+\)|{_NAME}{_B}+IS{_B}+(?:NOT{_B}+)?NULL)(?:{_B}+AND{_B}+(?=\(|{_NAME}{_B}+IS\b)|\Z)",
    _FLAGS,
)


def split_groups(text: str) -> list[str] | None:
    """Return the conditions that a text joins by AND: each in parentheses, or that something is (not) NULL.

    >>> split_groups("(a = 1 OR b = ')') AND c IS NULL AND (d)")
    ["(a = 1 OR b = ')')", 'c IS NULL', '(d)']
    >>> split_groups("(a) AND b"), split_groups("(a) AND (b) OR c")
    (None, None)
    """
    if len(text) > MAX_TEXT or "/*" in text:
        return None
    groups, at = [], 0
    while at < len(text):
        match = _GROUP.match(text, at)
        if match is None:
            return None
        groups.append(match[1])
        at = match.end()
    return groups if len(groups) > 1 else None


def _ask(joints: str) -> Skeleton | None:
    if len(joints) > _MAX_LENGTH or _nesting(joints) > _MAX_NESTING or _RUN.search(joints):
        return None
    from headgate.records.language.parse import parse_filter

    gaps = joints.split(SLOT)
    slots = len(gaps) - 1
    probe = "".join(f"{gap}{_SLOT_NAME.format(slot)}" for slot, gap in enumerate(gaps[:-1])) + gaps[-1]
    try:
        tree = parse_filter(probe)
        normal = normalise(tree)
        program = compile_program(normal)
    except FilterError:
        return None
    places = {path: slot for slot, path in enumerate(_paths(slots))}
    roles: dict[int, Role] = {}
    _assign(normal, AND, places, roles)
    order = tuple(places.get(leaf.path, _GLUED) for leaf in program.leaves)
    if sorted(roles) != list(range(slots)) or sorted(order) != list(range(slots)):
        return None
    signs = {AND: slots, OR: slots + 1}
    picked = [order[token] if token >= 0 else signs[token] for token in program.tokens]
    # itemgetter of one place returns no tuple; a slice of one does.
    fill = itemgetter(*picked) if len(picked) > 1 else itemgetter(slice(0, 1))
    listed = tuple(roles[slot] for slot in range(slots))
    uniform = listed[0] if len(set(listed)) == 1 else None
    groups = tuple(_groups(normal, places))
    return Skeleton(tree, listed, uniform, groups, program.tokens, order, fill)


skeletons = BoundedCache(_ask, _MAX_SKELETONS, _MAX_LENGTH)


def _nesting(joints: str) -> int:
    depth = deepest = 0
    for sign in joints:
        depth += (sign == "(") - (sign == ")")
        deepest = max(deepest, depth)
    return deepest


def _paths(slots: int) -> list[Path]:
    return [(_SLOT_NAME.format(slot),) for slot in range(slots)]


def _assign(node: Expression, sign: int, slots: dict[Path, int], roles: dict[int, Role]) -> None:
    if isinstance(node, And | Or):
        for child in node.children:
            _assign(child, AND if isinstance(node, And) else OR, slots, roles)
    else:
        roles[slots.get(_path(node), _GLUED)] = Role(sign, isinstance(node, Not))


def _groups(node: Expression, slots: dict[Path, int]) -> Iterator[tuple[int, ...]]:
    children = node.children if isinstance(node, And | Or) else (node,)
    own = tuple(slots[_path(child)] for child in children if not isinstance(child, And | Or))
    if own:
        yield own
    for child in children:
        if isinstance(child, And | Or):
            yield from _groups(child, slots)


def _path(node: Expression) -> Path:
    bare = node.child if isinstance(node, Not) else node
    assert isinstance(bare, Truth)
    return bare.attribute.path


def _bind(node: Expression, clauses: dict[Path, Expression]) -> Expression:
    if isinstance(node, And | Or):
        return type(node)(tuple(_bind(child, clauses) for child in node.children))
    if isinstance(node, Not):
        return Not(_bind(node.child, clauses))
    assert isinstance(node, Truth)
    return clauses[node.attribute.path]
