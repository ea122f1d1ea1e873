"""The table of sites: where each subscription is, and what its site can bear; the table of links between."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.ids import fit_id
from headgate.core.interning import TextPool
from headgate.errors import HeadgateError, TableError
from headgate.plan.model import Capacities
from headgate.plan.placement import Link, links_of
from headgate.runtime.rows import BOUNDS, is_nothing, read_line, read_number, read_site, why_broken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from headgate.core.arrays import Floats64
    from headgate.core.ids import Ids
    from headgate.plan.placement import Links


LINK_ENDS = ("from", "to")
"""The columns of a table of links that must be there."""


class Bounds(NamedTuple):
    """What a site bears if its rows do not say."""

    fan_out: float = math.inf
    bandwidth: float = math.inf
    cpu: float = math.inf


class Sites(NamedTuple):
    """Where views are, and the names of sites."""

    capacities: Capacities
    names: TextPool
    weights: Floats64 | None = None
    """What work at each site weighs; None if no row says."""


def read_sites(
    rows: Iterable[tuple[bytes | None, str | None]], path: str, ids: Ids, default: Bounds
) -> Sites:
    """Read the rows of a table with the columns `id` and perhaps `site`, `fan_out`, `bandwidth`, `cpu`.

    A row is a line of JSON, or a line of CSV that is broken. It may also have a `weight`.

    A subscription without a row, or without a site in it, has a site of its own. A row that cannot be used is
    an error: a plan without some of its bounds would look sound and not be.
    """
    site_of: dict[int, str] = {}
    seen: set[int] = set()
    bounds: dict[tuple[str | None, int], dict[str, float]] = {}

    def take(line: bytes) -> None:
        number, site, capacities = _row(line, ids)
        if number in seen:
            raise TableError(f"subscription {ids[number]!r} has a row already: give one")
        seen.add(number)
        known = bounds.setdefault((site, number if site is None else -1), {})
        for name, bound in capacities.items():
            if known.get(name, bound) != bound:
                raise TableError(f"site {site!r} has {name} {bound:g} here and {known[name]:g} before")
        known.update(capacities)
        if site is not None:
            site_of[number] = site

    _each_row(rows, path, take)
    # What has no site of a name is apart from all that have one, whatever these are called.
    keys = [(site_of.get(number), number if number not in site_of else -1) for number in range(len(ids))]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    titles = [str(ids[number]) if name is None else name for name, number in numbers]
    fan_out, bandwidth, cpu, weights = (
        np.array([bounds.get(key, {}).get(bound, fallback) for key in numbers], np.float64)
        for bound, fallback in zip(BOUNDS, (*default, 1.0), strict=True)
    )
    placed = np.array([numbers[key] for key in keys], np.int32)
    capacities = Capacities(placed, fan_out, bandwidth, cpu, math.inf, math.inf, math.inf)
    return Sites(capacities, TextPool.build(titles), weights if (weights != 1).any() else None)


def read_links(rows: Iterable[tuple[bytes | None, str | None]], path: str, names: Sequence[str]) -> Links:
    """Read the rows of a table with the columns `from`, `to`, and perhaps `delay` and `speed`.

    `names` are those of sites. A row that cannot be used is an error.
    """
    links: list[Link] = []

    def take(line: bytes) -> None:
        links.append(_link(read_line(line)))
        links_of(links[-1:], names)

    _each_row(rows, path, take)
    try:
        return links_of(links, names)
    except HeadgateError as error:
        raise TableError(f"{path}: {error}") from None


def _each_row(
    rows: Iterable[tuple[bytes | None, str | None]], path: str, take: Callable[[bytes], None]
) -> None:
    """Take rows but blank ones; says of one that cannot be used where it is."""
    for value, broken in rows:
        try:
            if value is None:
                raise TableError(why_broken(broken))
            if value.strip():
                take(bytes(value))
        except HeadgateError as error:
            text = broken if value is None else bytes(value).decode(errors="replace")
            raise TableError(f"{path}: {error}; the row is {text}") from None


def site_names(placed: Sites | None, ids: Ids) -> list[str]:
    """List the names of sites, by number; without a table each subscription is a site."""
    return [str(identity) for identity in ids] if placed is None else placed.names.texts()


def _link(given: Mapping[str, Any]) -> Link:
    ends = []
    for name in LINK_ENDS:
        site = given.get(name)
        if is_nothing(site) or isinstance(site, bool) or not isinstance(site, str | int):
            raise TableError(f"the row has no site in {name!r}: a link leads from one site to another")
        ends.append(str(site))
    rest = [None if is_nothing(given.get(name)) else read_number(given, name) for name in ("delay", "speed")]
    return Link(ends[0], ends[1], rest[0], rest[1])


def _row(line: bytes, ids: Ids) -> tuple[int, str | None, dict[str, float]]:
    identity, site, capacities = read_site(read_line(line))
    fitted = fit_id(identity, numbered=ids.numbered)
    position = len(ids) if fitted is None else ids.place(fitted)
    if position >= len(ids) or ids[position] != fitted:
        raise TableError(f"there is no subscription {identity!r} in the snapshot")
    return position, site, capacities
