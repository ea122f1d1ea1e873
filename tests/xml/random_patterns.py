"""Random patterns and documents over one small vocabulary, so that a third of all pairs match.

Everything is drawn from one `random.Random`, so a seed names a case and hypothesis can drive it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.xml.language.model import (
    ANY,
    ANY_ATTRIBUTE,
    CHILD,
    COMPARISONS,
    CONT,
    CONTAINS,
    DESCENDANT,
    ID,
    ROOT,
    STARTS_WITH,
    TEXT,
    VAL,
    WORD,
    Node,
    Pattern,
    Test,
    is_attribute,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from headgate.xml.language.model import Label

NAMES = ("a", "b", "c", "d")
ATTRIBUTES = ("x", "y")
SPACES = ("urn:n", "urn:m")
TEXTS = ("1", "2", "3", "x", "xy", "2.5")
ODD_TEXTS = (
    " 2 ",
    "-1",
    "",
    "+1",
    "1e3",
    ".5",
    "zoë 🎈",
    "say \"hi\" & 'ho' <b>",
    "]]>",
    "NaN",
    "\n\t ",
    "12",
)
NUMBERS = (1.0, 2.0, 3.0, 2.5, 0.0, -1.0, 12.0)
RETURNS = ((ID,), (VAL,), (CONT,), (ID, VAL), (ID, CONT), (VAL, CONT), (ID, VAL, CONT))


def random_pattern(rng: random.Random) -> Pattern:
    """Draw a pattern of one to eight nodes, now and then of several trees."""
    size = rng.choice((1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 8))
    nodes: list[Node] = []
    path: list[int] = []
    """The nodes from a root to the last node: the next one hangs below one of these, so order is preorder."""
    while len(nodes) < size:
        if nodes and rng.random() < 0.12:
            path = []
        while path and (not _may_have_children(nodes[path[-1]].label) or rng.random() < 0.3):
            if len(path) == 1 and _may_have_children(nodes[path[0]].label):
                break
            path.pop()
        parent = path[-1] if path else ROOT
        nodes.append(_node(rng, parent))
        path.append(len(nodes) - 1)
    if rng.random() < 0.85 and not any(node.returns for node in nodes):
        place = rng.randrange(size)
        node = nodes[place]
        nodes[place] = Node(node.label, node.axis, node.parent, node.tests, rng.choice(RETURNS))
    return Pattern(tuple(nodes))


def random_test(rng: random.Random) -> Test:
    """Draw a test, mostly of a common value."""
    draw = rng.random()
    if draw < 0.06:
        return Test(WORD, rng.choice(("x", "1", "2", "y", "xy", "é")))
    if draw < 0.25:
        return Test(rng.choice((CONTAINS, STARTS_WITH)), rng.choice(("x", "1", "2", "y", "", "xy")))
    if draw < 0.55:
        return Test("=" if rng.random() < 0.5 else "!=", random_text(rng))
    return Test(rng.choice(COMPARISONS), rng.choice(NUMBERS))


def random_text(rng: random.Random) -> str:
    """Draw a text, mostly one of a few."""
    return rng.choice(TEXTS) if rng.random() < 0.85 else rng.choice(ODD_TEXTS)


def random_document(rng: random.Random) -> str:
    """Draw the text of a document of up to some sixty elements, a quarter of them with namespaces."""
    spaced = rng.random() < 0.25
    budget = [rng.choice((1, 4, 10, 20, 30, 45, 60))]
    head = rng.choice(("", "", "", '<?xml version="1.0"?>', '<?xml version="1.0" encoding="UTF-8"?>\n'))
    declared = ' xmlns:n="urn:n" xmlns:m="urn:m"' if spaced else ""
    return head + _element(rng, 0, budget, spaced, declared)


def _element(rng: random.Random, depth: int, budget: list[int], spaced: bool, declared: str = "") -> str:
    budget[0] -= 1
    name = rng.choice(NAMES) if depth or rng.random() < 0.3 else NAMES[0]
    if spaced and rng.random() < 0.4:
        name = f"{rng.choice('nm')}:{name}"
    elif spaced and rng.random() < 0.2:
        declared += f' xmlns="{rng.choice((*SPACES, ""))}"'
    written = "".join(
        f' {"n:" if spaced and rng.random() < 0.3 else ""}{each}="{_escaped(random_text(rng), True)}"'
        for each in rng.sample(ATTRIBUTES, rng.choice((0, 0, 1, 1, 2)))
    )
    inside: list[str] = []
    for _ in range(rng.choice((0, 1, 2, 3, 4)) + (2 if not depth else 0)):
        if budget[0] > 0 and depth < 6 and rng.random() < 0.7:
            inside.append(_element(rng, depth + 1, budget, spaced))
        else:
            inside.append(_characters(rng))
    start = f"{name}{declared}{written}"
    return f"<{start}>{''.join(inside)}</{name}>" if inside or rng.random() < 0.5 else f"<{start}/>"


def _characters(rng: random.Random) -> str:
    """Draw what is between tags: a text, at times with a comment or an instruction in it, or as CDATA."""
    text = random_text(rng)
    draw = rng.random()
    if draw < 0.08:
        return f"{_escaped(text)}<!-- a < b & c -->{_escaped(random_text(rng))}"
    if draw < 0.12:
        return f"<?go on?>{_escaped(text)}"
    if draw < 0.18 and "]]>" not in text:
        return f"<![CDATA[{text}]]>"
    return _escaped(text)


def _escaped(text: str, quoted: bool = False) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;") if quoted else text


def _node(rng: random.Random, parent: int) -> Node:
    label = _label(rng, below_root=parent == ROOT)
    axis = DESCENDANT if rng.random() < (0.8 if parent == ROOT else 0.55) else CHILD
    if parent == ROOT and not _may_have_children(label):
        axis = DESCENDANT  # Only an element is a child of the document.
    few: Sequence[int] = (0, 0, 0, 0, 0, 0, 0, 0, 1, 2) if _may_have_children(label) else (0, 0, 0, 1, 1, 2)
    tests = tuple(dict.fromkeys(random_test(rng) for _ in range(rng.choice(few))))
    returns = rng.choice(RETURNS) if rng.random() < 0.3 else ()
    return Node(label, axis, parent, tests, returns)


def _label(rng: random.Random, below_root: bool) -> Label:
    draw = rng.random()
    if draw < (0.04 if below_root else 0.15):
        name = rng.choice(ATTRIBUTES)
        return f"@{rng.choice((name, name, name, f'*:{name}', '{urn:n}' + name))}"
    if draw < (0.05 if below_root else 0.18):
        return ANY_ATTRIBUTE
    if draw < (0.06 if below_root else 0.26):
        return TEXT
    if draw < 0.45:
        return ANY
    name = NAMES[0] if rng.random() < 0.3 else rng.choice(NAMES)
    if draw < 0.53:
        return f"*:{name}"
    return f"{{{rng.choice(SPACES)}}}{name}" if draw < 0.55 else name


def _may_have_children(label: Label) -> bool:
    return label != TEXT and not is_attribute(label)
