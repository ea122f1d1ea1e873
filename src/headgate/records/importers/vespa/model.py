"""Predicates of Vespa as a small tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Constant:
    """`true` or `false`."""

    value: bool


@dataclass(frozen=True)
class InSet:
    """`name in ['a', b]`."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class InRange:
    """`name in [low..high]`; a bound that is None is open."""

    name: str
    low: int | None
    high: int | None


@dataclass(frozen=True)
class Not:
    """`not (…)`, and `name not in […]`."""

    child: Node


@dataclass(frozen=True)
class Join:
    """`… and …`, or `… or …`."""

    both: bool
    children: tuple[Node, ...]


Node: TypeAlias = Constant | InSet | InRange | Not | Join
