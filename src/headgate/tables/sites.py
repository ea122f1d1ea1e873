"""The table of sites: where each subscription is, and what its site can bear."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.id_types import fit_id
from headgate.core.interning import TextPool
from headgate.errors import HeadgateError, TableError
from headgate.plan.model import Capacities
from headgate.runtime.rows import BOUNDS, read_line, read_site, why_broken

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.core.ids import Ids


class Bounds(NamedTuple):
    """What a site bears if its rows do not say."""

    fan_out: float = math.inf
    bandwidth: float = math.inf
    cpu: float = math.inf


class Sites(NamedTuple):
    """Where views are, and the names of sites."""

    capacities: Capacities
    names: TextPool


def read_sites(
    rows: Iterable[tuple[bytes | None, str | None]], path: str, ids: Ids, default: Bounds
) -> Sites:
    """Read the rows of a table with the columns `id` and perhaps `site`, `fan_out`, `bandwidth`, `cpu`.

    A row is a line of JSON, or a line of CSV that is broken.

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
    fan_out, bandwidth, cpu = (
        np.array([bounds.get(key, {}).get(bound, fallback) for key in numbers], np.float64)
        for bound, fallback in zip(BOUNDS, default, strict=True)
    )
    placed = np.array([numbers[key] for key in keys], np.int32)
    capacities = Capacities(placed, fan_out, bandwidth, cpu, math.inf, math.inf, math.inf)
    return Sites(capacities, TextPool.build(titles))


def _row(line: bytes, ids: Ids) -> tuple[int, str | None, dict[str, float]]:
    identity, site, given = read_site(read_line(line))
    fitted = fit_id(identity, numbered=ids.numbered)
    place = len(ids) if fitted is None else ids.place(fitted)
    if place >= len(ids) or ids[place] != fitted:
        raise TableError(f"there is no subscription {identity!r} in the snapshot")
    return place, site, given
