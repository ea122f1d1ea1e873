"""Filter texts to programs, by their shape where that is known and by the parser otherwise.

The program is that of `compile_program(normalise(parse_filter(text)))`, and so is the error. Four ways lead
there, each left for the next when it does not apply:

0. The text is several conditions in parentheses, joined by AND, as importers write them: the programs of
   these, which many filters share, end to end (`Binder`).
1. The joints have a skeleton, every clause is one leaf, and no two of those that one AND or OR joins are
   equal, or sets of values of one attribute: the skeleton's program over these leaves. There is nothing to
   merge then, and nothing equal to drop, unless two whole groups are equal.
2. The joints have a skeleton and every clause a model: the tree is put together, normalised and compiled.
3. The parser reads the text. All errors come from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.interning import TextPool
from headgate.errors import FilterError
from headgate.records.language.model import And, Constant, Or
from headgate.records.language.rewrite import normalise
from headgate.records.programs import clauses
from headgate.records.programs.columns import compile_family, read_slots
from headgate.records.programs.families import LEAST, find_families
from headgate.records.programs.leaf_writer import LeafList, LeafWriter
from headgate.records.programs.leaves import SetLeaf
from headgate.records.programs.program import compile_program
from headgate.records.programs.programs import ANY, concatenate, take
from headgate.records.programs.shapes import find_shape, split_groups
from headgate.records.programs.simple_clauses import read
from headgate.records.programs.simple_groups import read_group
from headgate.records.programs.tokens import AND, FALSE, OR, TRUE, Program

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.core.arrays import Ints
    from headgate.records.language.model import Expression
    from headgate.records.programs.programs import Programs
    from headgate.records.programs.shapes import Role, Shape, Skeleton


_SIGNS = [AND, OR]


class RefusedText(NamedTuple):
    """A text that is no filter, by its place among those given."""

    place: int
    error: FilterError


class CompiledTexts(NamedTuple):
    """The programs of the filters, in the order given, and the texts that are none."""

    programs: Programs
    refused: list[RefusedText]


def compile_filter(text: str) -> Program:
    """Compile one filter.

    >>> compile_filter("a > 1 AND (b = 2 OR NOT c)").tokens
    (0, 1, 2, -2, -1)
    """
    leaves = LeafList()
    binder = Binder(leaves)
    binder.add(text)
    return leaves.program(binder.tokens)


def parse_text(text: str) -> Expression:
    """Parse a filter: what `parse_filter` returns, sooner."""
    shape = find_shape(text)
    model = None if shape is None else _model(shape)
    return _parse(text) if model is None else model


def _parse(text: str) -> Expression:
    # What only matches an opened index has no use for the parser, which takes a while to load.
    from headgate.records.language.parse import parse_filter

    return parse_filter(text)


def _model(shape: Shape) -> Expression | None:
    models: list[Expression] = []
    for clause in shape.clauses:
        model = clauses.model_of[clause]
        if model is None:
            return None
        models.append(model)
    return shape.skeleton.bind(models)


def _stands_apart(sign: int, role: Role) -> bool:
    """Tell whether a clause is a group of its own, which comes after the leaves: BETWEEN among OR, say."""
    return sign not in {0, role.sign}


def _unmerged(skeleton: Skeleton, owners: Sequence[object], leaves: Sequence[int]) -> bool:
    """Tell whether every clause stays a leaf of its own.

    Sets of values of one attribute may merge if one AND or OR joins them. Of equal groups one is dropped if
    they are joined; they push equal leaves, in the same order.
    """
    if len(set(owners)) == len(owners):
        return True
    groups = skeleton.groups
    if len(groups) == 1 or any(len({owners[slot] for slot in group}) < len(group) for group in groups):
        return False
    return len({tuple(leaves[slot] for slot in group) for group in groups}) == len(groups)


def compile_filters(texts: Iterable[str] | TextPool) -> CompiledTexts:
    """Compile many filters; those that differ in their numbers only by columns.

    >>> done = compile_filters(["a = 1", "a +", "b = 'x' AND a = 1"])
    >>> done.programs.tokens.tolist(), [(text.place, text.error.position) for text in done.refused]
    ([0, 1, 0, -1], [(1, 2)])
    """
    given = texts if isinstance(texts, TextPool) else list(texts)
    pool = given if isinstance(given, TextPool) else _pool(given)
    parts, places = ([], []) if pool is None else _by_columns(pool)
    count = given.size if isinstance(given, TextPool) else len(given)
    left = np.ones(count, np.bool_)
    left[np.concatenate([np.zeros(0, np.int64), *places])] = False
    binder = Binder()
    refused, own = [], []
    for number in np.flatnonzero(left).tolist():
        try:
            binder.add(given.text(number) if isinstance(given, TextPool) else given[number])
            own.append(number)
        except FilterError as error:
            refused.append(RefusedText(number, error))
    programs = binder.finish()
    if not parts:
        return CompiledTexts(programs, refused)
    where = np.concatenate([np.array(own, np.int64), *places])
    joined = concatenate([programs, *parts]) if own or len(parts) > 1 else parts[0]
    in_order = bool((where[1:] > where[:-1]).all())
    return CompiledTexts(joined if in_order else take(joined, np.argsort(where)), refused)


def _by_columns(texts: TextPool) -> tuple[list[Programs], list[Ints]]:
    """Compile texts that differ in their numbers only; returns programs, and whose they are."""
    parts: list[Programs] = []
    places: list[Ints] = []
    for family in find_families(texts)[0]:
        shape = find_shape(texts.text(int(family.rows[0])))
        slots = None if shape is None else read_slots(shape, family.mantissa.shape[1])
        compiled = None if shape is None or slots is None else compile_family(shape, slots, family)
        if compiled is not None:
            programs, good = compiled
            parts.append(programs)
            places.append(family.rows[good])
    return parts, places


def _pool(texts: Sequence[str]) -> TextPool | None:
    if len(texts) < LEAST:
        return None
    try:
        return TextPool.build(texts)
    except UnicodeEncodeError:
        # Half a character, which the parser refuses.
        return None


class _Group(NamedTuple):
    """A condition of several that are joined by AND, as tokens over leaves of a writer.

    nested   it is an OR, which comes after all that are one predicate
    about    what it may merge with, if it is one predicate
    """

    tokens: tuple[int, ...]
    nested: bool
    about: object


class _NotBoundError(Exception):
    """A clause is no leaf among its neighbours."""


class _Numbers(dict[str, int]):
    """The numbers of leaves in a writer, by the text of a clause that has a certain role.

    `apart` has those of the clauses that stand apart.
    """

    def __init__(self, leaf_writer: LeafWriter | LeafList, role: Role) -> None:
        super().__init__()
        self.leaf_writer = leaf_writer
        self.role = role
        self.apart: dict[str, int] = {}

    def __missing__(self, clause: str) -> int:
        if clause in self.apart:
            raise _NotBoundError
        pieces = read(clause, negated=self.role.negated)
        if pieces is not None:
            sign, number = pieces.sign, self.leaf_writer.plain(pieces)
        else:
            atom = clauses.atom_of[self.role.negated][clause]
            if atom is None:
                raise _NotBoundError
            sign, number = atom.sign, self.leaf_writer.leaf(atom.leaf)
        if _stands_apart(sign, self.role):
            self.apart[clause] = number
            raise _NotBoundError
        self[clause] = number
        return number

    def all_of(self, texts: list[str]) -> list[int]:
        """Return the numbers of clauses that are joined, those that stand apart behind the others."""
        numbers: list[int] = []
        behind: list[int] = []
        for clause in texts:
            try:
                numbers.append(self[clause])
            except _NotBoundError:
                if clause not in self.apart:
                    raise
                behind.append(self.apart[clause])
        return numbers + behind


class Binder:
    """Lays the programs of texts end to end, mostly without making each of them.

    grouped, bound, joined, parsed   how many came by which of the four ways

    >>> binder = Binder()
    >>> for text in ("a = 'x' AND b > 1", "b > 1"):
    ...     binder.add(text)
    >>> found = binder.finish()
    >>> found.tokens.tolist(), found.token_start.tolist(), found.attributes
    ([0, 1, -1, 1], [0, 3, 4], (('a',), ('b',)))
    """

    def __init__(self, leaves: LeafWriter | LeafList | None = None) -> None:
        self._ledger = LeafWriter() if leaves is None else leaves
        self._numbers: dict[Role, _Numbers] = {}
        self.grouped = self.bound = self.joined = self.parsed = 0
        self._groups: dict[str, _Group | None] = {}
        self._lengths: list[int] = []
        self.tokens: list[int] = []

    def add(self, text: str) -> None:
        """Append the program of the next filter; a text that is none raises, and no filter is appended."""
        if ") AND " in text and self._group(text):
            self.grouped += 1
            return
        shape = find_shape(text)
        if shape is not None:
            if self._bind(shape):
                self.bound += 1
                return
            model = _model(shape)
            if model is not None:
                self.add_program(compile_program(normalise(model)))
                self.joined += 1
                return
        self.add_program(compile_program(normalise(_parse(text))))
        self.parsed += 1

    def add_program(self, program: Program) -> None:
        """Append a program."""
        numbers = [self._ledger.leaf(leaf) for leaf in program.leaves]
        self.tokens += [numbers[token] if token >= 0 else token for token in program.tokens]
        self._lengths.append(len(program.tokens))

    def finish(self) -> Programs:
        """Return all that was added."""
        assert isinstance(self._ledger, LeafWriter)
        return self._ledger.finish(self._lengths, self.tokens)

    def _group(self, text: str) -> bool:
        """Append a text of conditions in parentheses; tell whether it is one in which nothing merges."""
        conditions = split_groups(text)
        if conditions is None:
            return False
        groups: list[_Group] = []
        for written in conditions:
            try:
                group = self._groups[written]
            except KeyError:
                group = self._groups[written] = self._grouped(written)
            if group is None:
                return False
            groups.append(group)
        # Plain ones first, as `compile_program` has it; what could merge or is there twice is not done here.
        plain = [group for group in groups if not group.nested]
        nested = [group for group in groups if group.nested]
        if len({group.about for group in plain}) < len(plain):
            return False
        if len({group.tokens for group in nested}) < len(nested):
            return False
        tokens: list[int] = []
        for group in (*plain, *nested):
            begun = bool(tokens)
            tokens += group.tokens
            if begun:
                tokens.append(AND)
        self.tokens += tokens
        self._lengths.append(len(tokens))
        return True

    def _grouped(self, text: str) -> _Group | None:
        """Compile one condition of several; None if it is an AND itself, a constant, or no condition."""
        simple = read_group(text)
        if simple is None:
            return self._compiled(text)
        if isinstance(simple.value, SetLeaf):
            assert simple.element is not None
            value, element = self._ledger.leaf(simple.value), self._ledger.leaf(simple.element)
        else:
            value, element = self._ledger.plain(simple.value), self._ledger.plain(simple.value, ANY)
        return _Group((element, value, OR) if simple.last else (value, element, OR), True, 0)

    def _compiled(self, text: str) -> _Group | None:
        try:
            normal = normalise(parse_text(text))
            program = compile_program(normal)
        except FilterError:
            return None
        nested = isinstance(normal, Or)
        if isinstance(normal, And | Constant) or TRUE in program.tokens or FALSE in program.tokens:
            return None
        numbers = [self._ledger.leaf(leaf) for leaf in program.leaves]
        tokens = tuple(numbers[token] if token >= 0 else token for token in program.tokens)
        return _Group(tokens, nested, 0 if nested else self._ledger.mergers[tokens[0]])

    def _bind(self, shape: Shape) -> bool:
        skeleton, texts = shape.skeleton, shape.clauses
        try:
            numbers = self._numbers_of(skeleton, texts)
        except _NotBoundError:
            return False
        if not _unmerged(skeleton, list(map(self._ledger.mergers.__getitem__, numbers)), numbers):
            return False
        numbers += _SIGNS
        self.tokens += skeleton.fill(numbers)
        self._lengths.append(len(skeleton.tokens))
        return True

    def _numbers_of(self, skeleton: Skeleton, texts: list[str]) -> list[int]:
        role = skeleton.uniform
        if role is None:
            return [self._in_role(each)[clause] for each, clause in zip(skeleton.roles, texts, strict=True)]
        known = self._in_role(role)
        try:
            return list(map(known.__getitem__, texts))
        except _NotBoundError:
            if len(skeleton.groups) > 1:
                raise
            return known.all_of(texts)

    def _in_role(self, role: Role) -> _Numbers:
        known = self._numbers.get(role)
        if known is None:
            known = self._numbers[role] = _Numbers(self._ledger, role)
        return known
