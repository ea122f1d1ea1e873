"""Random views that have to do with each other: what is wider than a view, and views to compute it from."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from headgate.xml.language.model import (
    ANY,
    ANY_ATTRIBUTE,
    CHILD,
    CONT,
    DESCENDANT,
    ID,
    ROOT,
    TEXT,
    VAL,
    Node,
    Pattern,
    Test,
    is_attribute,
)
from headgate.xml.language.values import holds
from tests.xml.random_patterns import NAMES, TEXTS, random_pattern, random_test

if TYPE_CHECKING:
    import random

RETURNS = ((), (ID,), (VAL,), (CONT,), (VAL, CONT))


def wider(rng: random.Random, pattern: Pattern, steps: int | None = None) -> Pattern:
    """Draw a view that often embeds in another, made from it by steps that mostly lose conditions."""
    for _ in range(rng.randrange(6) if steps is None else steps):
        pattern = _step(rng, pattern)
    nodes = tuple(
        Node(n.label, n.axis, n.parent, n.tests, rng.choice(RETURNS) if rng.random() < 0.6 else n.returns)
        for n in pattern.nodes
    )
    return Pattern(nodes)


def view_set(rng: random.Random, size: int) -> list[Pattern]:
    """Draw views of one vocabulary: some by themselves, the others wider than one that is there."""
    views = [random_pattern(rng)]
    while len(views) < size:
        views.append(random_pattern(rng) if rng.random() < 0.1 else wider(rng, rng.choice(views)))
    return views


def _step(rng: random.Random, pattern: Pattern) -> Pattern:
    place = rng.randrange(len(pattern.nodes))
    node = pattern.nodes[place]
    label, axis, tests = node.label, node.axis, node.tests
    draw = rng.random()
    if draw < 0.35 and len(pattern.nodes) > 1:
        return without(pattern, place)
    if draw < 0.55:
        axis = DESCENDANT
    elif draw < 0.65 and label != TEXT:
        label = ANY_ATTRIBUTE if is_attribute(label) else ANY
    elif draw < 0.8:
        tests = ()
    elif draw < 0.9 and tests:
        tests = (*tests[1:], _weaker(rng, tests[0]))
    elif draw < 0.95:
        tests = tuple(dict.fromkeys((*tests, random_test(rng))))
    elif node.parent != ROOT or not (label == TEXT or is_attribute(label)):
        axis = CHILD
    changed = Node(label, axis, node.parent, tests, node.returns)
    return Pattern((*pattern.nodes[:place], changed, *pattern.nodes[place + 1 :]))


def without(pattern: Pattern, place: int) -> Pattern:
    """Leave a node out; what is below it hangs below its parent, somewhere."""
    gone = pattern.nodes[place]
    found = []
    for other, node in enumerate(pattern.nodes):
        if other == place:
            continue
        parent, axis = node.parent, node.axis
        if parent == place:
            parent, axis = gone.parent, DESCENDANT
        if parent != ROOT and parent > place:
            parent -= 1
        found.append(Node(node.label, axis, parent, node.tests, node.returns))
    return Pattern(tuple(found))


def _weaker(rng: random.Random, test: Test) -> Test:
    if isinstance(test.value, float) and test.sign in {">", ">=", "<", "<="}:
        away = -1.0 if test.sign.startswith(">") else 1.0
        return Test(test.sign, test.value + away * rng.random())
    if isinstance(test.value, str) and test.sign == "=":
        return rng.choice(
            (Test("contains", test.value[:1]), Test("starts-with", test.value[:1]), Test("!=", "no"))
        )
    return test


def planted_document(rng: random.Random, pattern: Pattern) -> str:
    """Draw a document that a pattern often holds for: its trees written as elements, each once or more."""
    tops = [pattern.nodes[root].label for root in pattern.roots if pattern.nodes[root].axis == CHILD]
    written = [
        _instance(rng, pattern, root) for root in pattern.roots for _ in range(rng.choice((1, 1, 2, 3)))
    ]
    rng.shuffle(written)
    if tops and len(pattern.roots) == 1:
        return _instance(rng, pattern, pattern.roots[0])
    name = _name(tops[0]) if tops else "a"
    return f"<{name}>{''.join(part for part in written if part.startswith('<'))}</{name}>"


def _instance(rng: random.Random, pattern: Pattern, place: int) -> str:
    """Write a node and what is below it; an attribute alone is written by its parent."""
    node = pattern.nodes[place]
    if node.label == TEXT:
        return escape(_value(rng, node))
    if is_attribute(node.label):
        return ""
    head = f"<{_name(node.label)}"
    taken = set()
    for child in pattern.children[place]:
        label = pattern.nodes[child].label
        if is_attribute(label) and (name := _name(label[1:])) not in taken:
            taken.add(name)
            head += f" {name}={quoteattr(_value(rng, pattern.nodes[child]))}"
    inside = [
        _around(rng, _instance(rng, pattern, child), pattern.nodes[child].axis)
        for child in pattern.children[place]
        for _ in range(rng.choice((1, 1, 1, 2)))
    ]
    if node.tests:
        inside = [escape(_value(rng, node)), *inside] if rng.random() < 0.5 else [escape(_value(rng, node))]
    return f"{head}>{''.join(inside)}</{_name(node.label)}>"


def _around(rng: random.Random, text: str, axis: str) -> str:
    if text and axis == DESCENDANT and rng.random() < 0.4:
        name = rng.choice(NAMES)
        return f"<{name}>{text}</{name}>"
    return text


def _name(label: str) -> str:
    """Choose a name without a namespace that a label covers, if there is one."""
    local = label.removeprefix("*:").rpartition("}")[2]
    return "a" if local in {ANY, TEXT} or is_attribute(local) else local


def _value(rng: random.Random, node: Node) -> str:
    """Draw a text that passes the tests, if one is found."""
    own = [each.value if isinstance(each.value, str) else f"{each.value:g}" for each in node.tests]
    options = [*own, *(f"{each}x" for each in own), *(str(number) for number in range(-1, 14)), *TEXTS]
    passing = [text for text in options if all(holds(test, text) for test in node.tests)]
    return rng.choice(passing or options)
