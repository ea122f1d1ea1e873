"""Documents as rows, and the same from the parser's tree: the obvious way to read one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.xml.language.model import TEXT

if TYPE_CHECKING:
    from headgate.xml.events.document import Document


def shown(document: Document) -> list[tuple[str, int, int, int, str]]:
    """List label, parent, end, level and val of each node."""
    return [
        (
            document.label(node),
            int(document.parents[node]),
            int(document.ends[node]),
            int(document.levels[node]),
            document.val(node),
        )
        for node in range(len(document.labels))
    ]


def of_tree(root: Any) -> list[tuple[str, int, int, int, str]]:
    """List the same of a tree without comments and instructions."""
    rows: list[Any] = []

    def add(element: Any, parent: int, level: int) -> None:
        place = len(rows)
        rows.append(None)
        rows.extend(
            (f"@{name}", place, place + 1 + n, level + 1, value)
            for n, (name, value) in enumerate(element.attrib.items())
        )
        for text, child in zip(
            (element.text, *(each.tail for each in element)), (*element, None), strict=True
        ):
            if text:
                rows.append((TEXT, place, len(rows), level + 1, text))
            if child is not None:
                add(child, place, level + 1)
        rows[place] = (str(element.tag), parent, len(rows) - 1, level, "".join(element.itertext()))

    add(root, -1, 0)
    return rows
