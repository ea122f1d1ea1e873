"""The grammar of filters over the kinds of words, for lark, and what its trees mean.

It is one grammar for both dialects, and for paths from the document and those in brackets: where a path may
begin is for `Reader` to tell, so that it can say what to write. It is free of context and sees kinds only.
`Reader` makes the model of a tree, and refuses what is well-formed and cannot be meant.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from lark import Lark, Token, Tree, UnexpectedToken
from lark.lexer import Lexer

from headgate.core.subscription import TREE
from headgate.xml.language import words
from headgate.xml.language.model import (
    CHILD,
    CONT,
    CONTAINS,
    DESCENDANT,
    ROOT,
    STARTS_WITH,
    TEXT,
    WORD,
    Node,
    Pattern,
    Test,
    is_attribute,
)
from headgate.xml.language.refusal import (
    BAD_FLAGS,
    BAD_REGEX,
    RefusedFilterError,
    check_nodes,
    check_tests,
    shown,
)
from headgate.xml.language.values import wanted_word
from headgate.xml.language.words import label_of, number_of, returns_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    from headgate.xml.language.words import Kinds

    Branch: TypeAlias = Token | Tree[Token]


_GRAMMAR = """
filter: _conditions
_conditions: _condition | _conditions _AND _condition
_condition: found | compared | turned | called | searched | _LEFT _conditions _RIGHT
found: path
compared: path _sign _value
turned: _value _sign path
called: (CONTAINS | STARTS_WITH) path _COMMA _value _RIGHT
searched: RE_TEST path _COMMA STRING (_COMMA STRING)? _RIGHT
_sign: EQ | NE | LT | LE | GT | GE
_value: STRING | NUMBER | negative
negative: _MINUS NUMBER

path: SELF | SELF _steps | step | step _steps | _steps
_steps: _slash step | _steps _slash step
_slash: SLASH | DOUBLE
step: _test MARK? bracket*
_test: _name | ATTRIBUTE | TEXT | CHILD_AXIS _below | DESCENDANT_AXIS _below | ATTRIBUTE_AXIS _name
_below: _name | TEXT
_name: NAME | VAL
bracket: _BEGIN _conditions _END
"""


class MisplacedWordError(Exception):
    """A word that cannot stand where it stands: its number, and the kinds that could."""

    def __init__(self, number: int, expected: set[str]) -> None:
        super().__init__(number)
        self.number = number
        self.expected = expected


def tree_of(kinds: Kinds) -> Tree[Token]:
    """Find the tree of a text by the kinds of its words; the value of a token is the number of its word."""
    try:
        return _parser().parse(kinds)
    except UnexpectedToken as error:
        number = len(kinds) if error.token.type == "$END" else int(error.token.value)
        raise MisplacedWordError(number, set(error.accepts or ())) from None


class _NumberedLexer(Lexer):
    """Hands the parser kinds in place of a text."""

    def __init__(self, _configuration: Any) -> None:
        pass

    def lex(self, data: Any) -> Iterator[Token]:  # type: ignore[override]  # lark's interface of one argument
        """Number the words."""
        for number, kind in enumerate(data):
            token = Token(kind, kind)
            token.value = number
            yield token


@cache
def _parser() -> Lark:
    kinds = {
        *words.SIGNS.values(),
        *words.FUNCTIONS.values(),
        *words.AXES.values(),
        *(words.NAME, words.ATTRIBUTE, words.TEXT_STEP, words.VAL, words.MARK),
        *(words.STRING, words.NUMBER, words.AND),
    }
    declared = f"%declare {' '.join(sorted(kinds - {words.PARENT}))}"
    return Lark(f"{_GRAMMAR}\n{declared}", parser="lalr", lexer=_NumberedLexer, start="filter")


_SIGNS = {"EQ": "=", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CALLS = {"CONTAINS": CONTAINS, "STARTS_WITH": STARTS_WITH}
_SLASHES = {"SLASH": CHILD, "DOUBLE": DESCENDANT}


class Reader:
    """Walks the tree and collects the nodes of the pattern, in the order in which they are written."""

    def __init__(self, texts: Sequence[str], dialect: str) -> None:
        self._texts = texts
        self._tree = dialect == TREE
        self._nodes: list[Node] = []
        self._tests: list[list[Test]] = []
        self._marked = False

    def pattern(self, tree: Tree[Token]) -> Pattern:
        """Walk the whole tree."""
        last = self._conditions(tree.children, ROOT)
        alone = len(tree.children) == 1 and _name(tree.children[0]) == "found"
        default = (CONT,) if alone and not self._marked else ()
        return Pattern(
            tuple(
                Node(
                    node.label,
                    node.axis,
                    node.parent,
                    tuple(tests),
                    default if default and place == last else node.returns,
                )
                for place, (node, tests) in enumerate(zip(self._nodes, self._tests, strict=True))
            )
        )

    def _conditions(self, trees: Sequence[Branch], base: int) -> int:
        """Walk conditions on a node, or on the document; return the node where the last one's path ends."""
        last = base
        for tree in trees:
            assert isinstance(tree, Tree)
            parts = tree.children
            if tree.data == "found":
                last = self._path(parts[0], base, tested=False)
            elif tree.data == "turned":
                value, sign, path = parts
                last = self._path(path, base, tested=True)
                self._test(last, _TURNED[_SIGNS[_name(sign)]], value)
            elif tree.data == "compared":
                path, sign, value = parts
                last = self._path(path, base, tested=True)
                self._test(last, _SIGNS[_name(sign)], value)
            elif tree.data == "searched":
                _, path, *written = parts
                last = self._path(path, base, tested=True)
                self._search(last, written)
            else:
                call, path, value = parts
                last = self._path(path, base, tested=True)
                self._test(last, _CALLS[_name(call)], value)
        return last

    def _test(self, place: int, sign: str, tree: Branch) -> None:
        """Put a test on a node."""
        negative = isinstance(tree, Tree)
        number = _number(tree)
        word = self._texts[number]
        value: str | float
        if _name(tree) == words.STRING:
            value = text_of(word)
            if sign in ("<", "<=", ">", ">="):
                raise RefusedFilterError("texts have no order: compare with a number, without quotes", number)
        else:
            if sign in (CONTAINS, STARTS_WITH):
                raise RefusedFilterError(f"{sign}() needs a text: write '{shown(word)}' in quotes", number)
            found = number_of(word, negative=negative)
            if found is None:
                raise RefusedFilterError("the number is too large", number)
            value = found
        self._tests[place].append(Test(sign, value))
        check_tests(len(self._tests[place]), number)

    def _search(self, place: int, written: Sequence[Branch]) -> None:
        """Put a test for a word on a node: the regular expression and its flags say which."""
        numbers = [_number(each) for each in written]
        word = wanted_word(text_of(self._texts[numbers[0]]))
        if word is None:
            raise RefusedFilterError(BAD_REGEX, numbers[0])
        if len(numbers) == 1 or text_of(self._texts[numbers[1]]) != "i":
            raise RefusedFilterError(BAD_FLAGS, numbers[-1])
        self._tests[place].append(Test(WORD, word))
        check_tests(len(self._tests[place]), numbers[0])

    def _path(self, tree: Branch, base: int, *, tested: bool) -> int:
        """Walk a path; return the node where it ends."""
        assert isinstance(tree, Tree)
        first, *rest = tree.children
        self._check_beginning(first, rest, base, tested=tested)
        if isinstance(first, Token):
            place = base
            if first.type != words.SELF:
                rest = [first, *rest]
        elif self._tree and tested and not rest and _name(first.children[0]) == words.VAL:
            if len(first.children) > 1:
                raise RefusedFilterError(
                    "val is the node's own value: a child of that name is /val", _number(first)
                )
            return base
        else:
            place = self._step(first, CHILD, base)
        for slash, step in zip(rest[::2], rest[1::2], strict=True):
            place = self._step(step, _SLASHES[_name(slash)], place)
        return place

    def _check_beginning(self, first: Branch, rest: Sequence[Branch], base: int, *, tested: bool) -> None:
        """Refuse a path that begins where it cannot."""
        kind, number = _name(first), _number(first)
        if base == ROOT:
            if kind == words.SELF:
                raise RefusedFilterError(
                    "a filter begins at the document: write / or // in place of .", number
                )
            if kind == "step":
                axis, word = self._written(first)
                name = shown(word)
                ways = f"//{name}"
                if axis != words.DESCENDANT_AXIS and label_of[word] != TEXT and not is_attribute(word):
                    ways += f" or /{name}"
                raise RefusedFilterError(f"a filter begins at the document: write {ways}", number)
        elif kind == words.SELF:
            if self._tree:
                raise RefusedFilterError(
                    f"'.' is not in the tree notation: {'leave it out' if rest else 'write val'}", number
                )
            if not rest and not tested:
                raise RefusedFilterError("'.' is always there: compare it with something", number)
        elif kind in _SLASHES and not self._tree:
            axis, word = self._written(rest[0])
            name = shown(word)
            relative = f".//{name}" if kind == "DOUBLE" or axis == words.DESCENDANT_AXIS else name
            raise RefusedFilterError(
                f"a path in brackets begins at the step before them: write {relative}", number
            )

    def _step(self, tree: Branch, slash: str, parent: int) -> int:
        """Add the node of a step, and what its brackets ask of it."""
        assert isinstance(tree, Tree)
        parts = list(tree.children)
        number = _number(tree)
        axis, word = self._written(tree)
        if axis in words.AXES.values():
            if self._tree:
                raise RefusedFilterError("axes have no names in the tree notation: write / or //", number)
            del parts[0]
        label, below = label_of[word], DESCENDANT if axis == words.DESCENDANT_AXIS else slash
        self._check_parent(label, below, parent, number)
        returns: tuple[str, ...] = ()
        if len(parts) > 1 and _name(parts[1]) == words.MARK:
            found = returns_of[self._texts[_number(parts[1])]]
            if isinstance(found, str):
                raise RefusedFilterError(found, _number(parts[1]))
            self._marked, returns = True, found
            del parts[1]
        place = len(self._nodes)
        self._nodes.append(Node(label, below, parent, (), returns))
        self._tests.append([])
        check_nodes(len(self._nodes), number)
        for bracket in parts[1:]:
            assert isinstance(bracket, Tree)
            self._conditions(bracket.children, place)
        return place

    def _written(self, step: Branch) -> tuple[str, str]:
        """Return the kind of a step's first word, which may be an axis, and the step without one."""
        assert isinstance(step, Tree)
        axis = _name(step.children[0])
        word = self._texts[_number(step.children[axis in words.AXES.values()])]
        return axis, f"@{word}" if axis == words.ATTRIBUTE_AXIS else word

    def _check_parent(self, label: str, axis: str, parent: int, number: int) -> None:
        """Refuse a step that nothing can be found by."""
        if parent == ROOT:
            if axis == CHILD and (label == TEXT or is_attribute(label)):
                raise RefusedFilterError(
                    f"only the root element is right below the document: write //{label}", number
                )
            return
        above = self._nodes[parent].label
        if above == TEXT:
            raise RefusedFilterError("a text has nothing below it: put text() last", number)
        if is_attribute(above):
            raise RefusedFilterError("an attribute has nothing below it: put it last, or in brackets", number)


def _name(tree: Branch) -> str:
    return tree.type if isinstance(tree, Token) else str(tree.data)


def _number(tree: Branch) -> int:
    """Find the number of the first word that is kept."""
    while isinstance(tree, Tree):
        tree = tree.children[0]
    return int(tree.value)
