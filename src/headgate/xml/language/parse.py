"""Filter text to the model: at once if it is as usual, else by the grammar."""

from __future__ import annotations

from headgate.core.subscription import TREE, XPATH
from headgate.errors import FilterError, SubscriptionError
from headgate.xml.language.grammar import MisplacedWordError, Reader, tree_of
from headgate.xml.language.model import (
    CHILD,
    COMPARISONS,
    CONT,
    CONTAINS,
    ROOT,
    STARTS_WITH,
    TEXT,
    WORD,
    Node,
    Pattern,
    Test,
)
from headgate.xml.language.refusal import (
    MAX_DEPTH,
    MAX_NODES,
    MAX_TESTS,
    MAX_WORDS,
    RefusedFilterError,
    check_shape,
    check_text,
    misplaced,
)
from headgate.xml.language.values import wanted_word
from headgate.xml.language.words import cut, kinds_of, number_of, places, returns_of, step_of, text_of

_AXES = frozenset(("/", "//"))
_SIGNS = frozenset(COMPARISONS)
_ORDERS = _SIGNS - {"=", "!="}
_CALLS = {"contains(": CONTAINS, "starts-with(": STARTS_WITH, "re:test(": WORD}
_END = ""
"""Stands behind the last word; no word is empty."""


def quick_pattern(texts: list[str], dialect: str) -> Pattern | None:
    """Read the words of a filter; None if the grammar has to decide.

    >>> from headgate.xml.language.words import cut
    >>> [node.label for node in quick_pattern(cut("//a[b = 'x']/@c{val}"), "xpath").nodes]
    ['a', 'b', '@c']
    >>> quick_pattern(cut("//a[(b)]"), "xpath")
    """
    if len(texts) > MAX_WORDS:
        return None
    tree = dialect == TREE
    mark, own = ("_{", "val") if tree else ("{", ".")
    words = [*texts, _END, _END, _END]
    labels: list[str] = []
    axes: list[str] = []
    parents: list[int] = []
    tests: list[tuple[Test, ...]] = []
    returns: list[tuple[str, ...]] = []
    marked = joined = False
    open_brackets: list[tuple[int, int, str | None]] = []
    base = node = ROOT
    call: str | None = None
    at, begins = 0, True
    while True:
        word = words[at]
        if begins:
            begins = False
            call = _CALLS.get(word)
            if call:
                at += 1
                word = words[at]
            node = base
            if word in _AXES and (tree or base == ROOT):
                axis = word
                at += 1
            elif base == ROOT:
                return None
            elif word == own:
                at += 1
                axis = words[at]
                if axis in _SIGNS or (call and axis == ","):
                    continue
                if tree or axis not in _AXES:
                    return None
                at += 1
            else:
                axis = CHILD
        elif word in _AXES:
            axis = word
            at += 1
        elif word == "[":
            open_brackets.append((base, node, call))
            if len(open_brackets) > MAX_DEPTH // 2:
                return None
            base, begins = node, True
            at += 1
            continue
        else:
            if word in _SIGNS or word == ",":
                if (word == ",") != bool(call):
                    return None
                value = _value(words, at + 1)
                if value is None or (isinstance(value, str) and word in _ORDERS):
                    return None
                at += 3 if words[at + 1] == "-" else 2
                if call:
                    if call == WORD and isinstance(value, str):
                        value = wanted_word(value)
                        if words[at] != "," or _value(words, at + 1) != "i":
                            return None
                        at += 2
                    if words[at] != ")" or not isinstance(value, str):
                        return None
                    at += 1
                tests[node] += (Test(call or word, value),)
                if len(tests[node]) > MAX_TESTS:
                    return None
                joined = joined or not open_brackets
                word = words[at]
            elif call:
                return None
            # The condition is complete.
            at += 1
            if word == "]" and open_brackets:
                base, node, call = open_brackets.pop()
                continue
            if word == "and":
                joined = joined or not open_brackets
                begins = True
                continue
            if word == _END and not open_brackets:
                break
            return None

        label = step_of[words[at]]
        if not label or len(labels) == MAX_NODES:
            return None
        if node == ROOT:
            if axis == CHILD and (label[0] == "@" or label == TEXT):
                return None
        elif labels[node][0] == "@" or labels[node] == TEXT:
            return None
        parents.append(node)
        node = len(labels)
        labels.append(label)
        axes.append(axis)
        tests.append(())
        at += 1
        if words[at].startswith(mark):
            found = returns_of[words[at]]
            if isinstance(found, str):
                return None
            returns.append(found)
            marked = True
            at += 1
        else:
            returns.append(())
    if not marked and not joined:
        returns[node] = (CONT,)
    return Pattern(tuple(map(Node, labels, axes, parents, tests, returns)))


def _value(words: list[str], at: int) -> str | float | None:
    """Read a literal; None if there is none."""
    word = words[at]
    negative = word == "-"
    if negative:
        word = words[at + 1]
    if word[:1] in ("'", '"'):
        return None if negative or word.count(word[0]) % 2 else text_of(word)
    # Words that begin so are numbers, but for '.' and '..', and those with an exponent.
    if word[:1] not in ".0123456789" or not word.replace(".", "", 1).isdigit():
        return None
    return number_of(word, negative=negative)


def parse_filter(text: str, dialect: str = XPATH) -> Pattern:
    """Parse a filter; refuse what the language lacks, with position and reason.

    >>> [(node.label, node.returns) for node in parse_filter("//news[company = 'ACME']//headline{id}").nodes]
    [('news', ()), ('company', ()), ('headline', ('id',))]
    >>> parse_filter("//news[1]")
    Traceback (most recent call last):
    ...
    headgate.errors.FilterError: [1] asks for a position, which is not supported: tell nodes apart by what they contain, at character 8: //news[⟪1]
    """  # noqa: E501 -- the message is one line
    check_dialect(dialect)
    words = cut(check_text(text))
    return quick_pattern(words, dialect) or _by_grammar(text, words, dialect)


def parse_by_grammar(text: str, dialect: str = XPATH) -> Pattern:
    """Parse a filter by the grammar alone: slower, and equal to `parse_filter`.

    >>> parse_by_grammar("//a[b]") == parse_filter("//a[b]")
    True
    """
    check_dialect(dialect)
    return _by_grammar(text, cut(check_text(text)), dialect)


def check_dialect(dialect: str) -> None:
    """Refuse a dialect that is not of the room."""
    if dialect not in (XPATH, TREE):
        raise SubscriptionError(
            f"dialect {dialect!r} is not for XML: filters of XML events are {XPATH!r} or {TREE!r}",
            names_it=False,
        )


def _by_grammar(text: str, words: list[str], dialect: str) -> Pattern:
    kinds = kinds_of(words, dialect)
    try:
        check_shape(kinds)
        return Reader(words, dialect).pattern(tree_of(kinds))
    except MisplacedWordError as error:
        refused = misplaced(words, kinds, error.number, error.expected, dialect)
    except RefusedFilterError as error:
        refused = error
    raise FilterError(refused.reason, text, places(text)[refused.number])
