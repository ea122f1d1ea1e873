"""Algorithms of the papers that no product path takes: they lie in `headgate.papers`, above all rooms.

They are found by the names of their modules when they are asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def of_papers(place: str, *given: object) -> Any:
    """Call what a module of `headgate.papers` has, named "module:name"."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"headgate.papers.{module}"), name)(*given)
