"""What a pattern means, written so that one can see it: try everything, slowly.

All other ways to match in this room have to agree with this one.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from headgate.xml.events.serialising import content
from headgate.xml.explain.explain import reachable
from headgate.xml.language.model import CONT, ID, ROOT, VAL, Pattern, StructuralId, covers
from headgate.xml.language.values import holds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.xml.events.document import Document
    from headgate.xml.language.model import Node

Row: TypeAlias = tuple[str | StructuralId, ...]


def matches(pattern: Pattern, document: Document) -> bool:
    """Tell whether a pattern holds for a document."""
    return all(any(_embeds(pattern, node, ROOT, document)) for node in pattern.roots)


def tuples(pattern: Pattern, document: Document) -> list[Row]:
    """List what is returned: a row for each combination of returning nodes, in document order of these."""
    return [
        tuple(
            _returned(what, document, image)
            for node, image in zip(pattern.returning, images, strict=True)
            for what in pattern.nodes[node].returns
        )
        for images in combinations(pattern, document)
    ]


def combinations(pattern: Pattern, document: Document) -> list[tuple[int, ...]]:
    """List the images of the returning nodes under all embeddings, each combination once, in order."""
    trees = [_images(pattern, root, ROOT, document) for root in pattern.roots]
    return sorted(sum(each, ()) for each in product(*trees))


def taking_part(pattern: Pattern, document: Document) -> list[list[int]]:
    """List for each node of the pattern the nodes that it stands for in at least one embedding."""
    return [
        [image for (image,) in combinations(_returning_only(pattern, place), document)]
        for place in range(len(pattern.nodes))
    ]


def satisfies(node: Node, image: int, document: Document) -> bool:
    """Tell whether a node of the document has the label of a pattern's node and passes its tests."""
    return covers(node.label, document.label(image)) and all(
        holds(test, document.val(image)) for test in node.tests
    )


def _embeds(pattern: Pattern, place: int, above: int, document: Document) -> Iterator[bool]:
    """Yield True for each way to place a node, and all below it, under the image of its parent."""
    for image in reachable(pattern.nodes[place], above, document):
        if satisfies(pattern.nodes[place], image, document) and all(
            any(_embeds(pattern, child, image, document)) for child in pattern.children[place]
        ):
            yield True


def _images(pattern: Pattern, place: int, above: int, document: Document) -> set[tuple[int, ...]]:
    """Collect the images of the returning nodes from a node on, when the parent's image is given."""
    node = pattern.nodes[place]
    found: set[tuple[int, ...]] = set()
    for image in reachable(node, above, document):
        if satisfies(node, image, document):
            branches = [_images(pattern, child, image, document) for child in pattern.children[place]]
            own = (image,) if node.returns else ()
            found |= {sum(each, own) for each in product(*branches)}
    return found


def _returning_only(pattern: Pattern, chosen: int) -> Pattern:
    return Pattern(
        tuple(
            type(node)(node.label, node.axis, node.parent, node.tests, (ID,) if place == chosen else ())
            for place, node in enumerate(pattern.nodes)
        )
    )


def _returned(what: str, document: Document, image: int) -> str | StructuralId:
    if what == VAL:
        return document.val(image)
    return content(document, image) if what == CONT else document.id(image)
