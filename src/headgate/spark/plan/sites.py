"""The table of sites: where each subscription is, and what its site can bear."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.event import ID, read_object
from headgate.core.id_types import fit_id
from headgate.core.interning import TextPool
from headgate.core.values import fold
from headgate.errors import HeadgateError, TableError
from headgate.plan.model import Capacities
from headgate.spark.tables.tables import BROKEN, VALUE, read_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.core.ids import Ids

SITE = "site"
BOUNDS = ("fan_out", "bandwidth", "cpu")
"""The columns that bound a site; null or none is no limit of its own."""


class Bounds(NamedTuple):
    """What a site bears if its rows do not say."""

    fan_out: float = math.inf
    bandwidth: float = math.inf
    cpu: float = math.inf


class Sites(NamedTuple):
    """Where views are, and the names of sites."""

    capacities: Capacities
    names: TextPool


def read_sites(session: SparkSession, path: str, ids: Ids, default: Bounds) -> Sites:
    """Read a table with the columns `id` and perhaps `site`, `fan_out`, `bandwidth`, `cpu`.

    A subscription without a row, or without a site in it, has a site of its own. A row that cannot be used is
    an error: a plan without some of its bounds would look sound and not be.
    """
    site_of: dict[int, str] = {}
    seen: set[int] = set()
    bounds: dict[tuple[str | None, int], dict[str, float]] = {}
    for value, broken in read_lines(session, path, ID).select(VALUE, BROKEN).collect():
        if value is not None and not value.strip():
            continue
        try:
            if value is None:
                raise TableError("the line does not have as many fields as the header")
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
    row = {fold(name): value for name, value in read_object(line).items()}
    identity = row.get(ID)
    if isinstance(identity, bool) or not isinstance(identity, str | int):
        raise TableError("the row has no id: name a subscription in the field 'id'")
    fitted = fit_id(identity, numbered=ids.numbered)
    place = len(ids) if fitted is None else ids.place(fitted)
    if place >= len(ids) or ids[place] != fitted:
        raise TableError(f"there is no subscription {identity!r} in the snapshot")
    site = row.get(SITE)
    if isinstance(site, bool) or not isinstance(site, str | int | None):
        raise TableError(f"site is {site!r}: give its name, or leave it out")
    given = {name: _bound(name, row[name]) for name in BOUNDS if not _is_nothing(row.get(name))}
    return place, None if _is_nothing(site) else str(site), given


def _is_nothing(value: object) -> bool:
    return value is None or value == ""


def _bound(name: str, value: object) -> float:
    try:
        bound = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else -1.0
    except ValueError:
        bound = -1.0
    if not bound >= 0:
        raise TableError(f"{name} is {value!r}: give a number that is 0 or more, or leave it out")
    return bound
