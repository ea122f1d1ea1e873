"""How much one document may ask for."""

from __future__ import annotations

from dataclasses import dataclass

DEEPEST = 255
"""What the parser takes at most, whatever the limit is."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one document may ask for. Time and memory are in proportion to these."""

    size: int = 8 << 20
    """Bytes of the document as UTF-8."""
    depth: int = 128
    """Elements inside elements; at most 255."""
    attributes: int = 256
    """Attributes of one element; namespace declarations count."""
    children: int = 100_000
    """Elements and texts directly inside one element."""
    nodes: int = 1_000_000
    """Elements, attributes and texts in all."""
    names: int = 10_000
    """Different names of elements and attributes."""
    text: int = 4 << 20
    """Bytes of all texts and attributes together."""

    def __post_init__(self) -> None:
        """Refuse a depth that the parser refuses."""
        if not 1 <= self.depth <= DEEPEST:
            raise ValueError(f"the limit of depth is {self.depth}: give one from 1 to {DEEPEST}")
