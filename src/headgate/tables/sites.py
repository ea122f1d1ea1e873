"""The table of sites: where each subscription is, and what its site can bear; the table of links between."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.id_types import fit_id
from headgate.core.interning import TextPool
from headgate.errors import HeadgateError, TableError
from headgate.plan.model import Capacities
from headgate.plan.placement import Link, links_of
from headgate.runtime.rows import BOUNDS, is_nothing, read_line, read_number, read_site, why_broken

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

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
    weights: NDArray[np.float64] | None = None
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
    for value, broken in rows:
        if value is not None and not value.strip():
            continue
        try:
            if value is None:
                raise TableError(why_broken(broken))
            number, site, given = _row(bytes(value), ids)
            if number in seen:
                raise TableError(f"subscription {ids[number]!r} has a row already: give one")
            seen.add(number)
            known = bounds.setdefault((site, number if site is None else -1), {})
            for name, bound in given.items():
                if known.get(name, bound) != bound:
                    raise TableError(f"site {site!r} has {name} {bound:g} here and {known[name]:g} before")
            known.update(given)
            if site is not None:
                site_of[number] = site
        except HeadgateError as error:
            text = broken if value is None else bytes(value).decode(errors="replace")
            raise TableError(f"{path}: {error}; the row is {text}") from None
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
    found: list[Link] = []
    for value, broken in rows:
        if value is not None and not value.strip():
            continue
        try:
            if value is None:
                raise TableError(why_broken(broken))
            found.append(_link(read_line(bytes(value))))
            links_of(found[-1:], names)
        except HeadgateError as error:
            text = broken if value is None else bytes(value).decode(errors="replace")
            raise TableError(f"{path}: {error}; the row is {text}") from None
    try:
        return links_of(found, names)
    except HeadgateError as error:
        raise TableError(f"{path}: {error}") from None


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
    identity, site, given = read_site(read_line(line))
    fitted = fit_id(identity, numbered=ids.numbered)
    place = len(ids) if fitted is None else ids.place(fitted)
    if place >= len(ids) or ids[place] != fitted:
        raise TableError(f"there is no subscription {identity!r} in the snapshot")
    return place, site, given
