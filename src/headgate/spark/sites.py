"""The table of sites: where each subscription is, and what its site can bear."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.event import ID, read_object
from headgate.core.interning import TextPool
from headgate.core.values import fold
from headgate.errors import HeadgateError, TableError
from headgate.plan.model import Capacities
from headgate.spark.id_types import fit_id
from headgate.spark.tables import BROKEN, VALUE, read_lines

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
    bounds: dict[str, dict[str, float]] = {}
    for value, broken in read_lines(session, path, ID).select(VALUE, BROKEN).collect():
        if value is not None and not value.strip():
            continue
        try:
            if value is None:
                raise TableError("the line does not have as many fields as the header")
            number, site, given = _row(bytes(value), ids)
            if number in site_of:
                raise TableError(f"subscription {ids[number]!r} has a row already: give one")
            known = bounds.setdefault(site, {})
            for name, bound in given.items():
                if known.get(name, bound) != bound:
                    raise TableError(f"site {site!r} has {name} {bound:g} here and {known[name]:g} before")
            known.update(given)
            site_of[number] = site
        except HeadgateError as error:
            text = broken if value is None else bytes(value).decode(errors="replace")
            raise TableError(f"{path}: {error}; the row is {text}") from None
    names = [site_of.get(number, str(identity)) for number, identity in enumerate(ids)]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    fan_out, bandwidth, cpu = (
        np.array([bounds.get(name, {}).get(bound, fallback) for name in numbers], np.float64)
        for bound, fallback in zip(BOUNDS, default, strict=True)
    )
    placed = np.array([numbers[name] for name in names], np.int32)
    capacities = Capacities(placed, fan_out, bandwidth, cpu, math.inf, math.inf, math.inf)
    return Sites(capacities, TextPool.build(list(numbers)))


def _row(line: bytes, ids: Ids) -> tuple[int, str, dict[str, float]]:
    row = {fold(name): value for name, value in read_object(line).items()}
    identity = row.get(ID)
    if isinstance(identity, bool) or not isinstance(identity, str | int):
        raise TableError("the row has no id: name a subscription in the field 'id'")
    fitted = fit_id(identity, numbered=ids.numbered)
    place = len(ids) if fitted is None else ids.place(fitted)
    if place >= len(ids) or ids[place] != fitted:
        raise TableError(f"there is no subscription {identity!r} in the snapshot")
    site = row.get(SITE)
    given = {name: _bound(name, row[name]) for name in BOUNDS if row.get(name) not in {None, ""}}
    return place, str(fitted if site in {None, ""} else site), given


def _bound(name: str, value: object) -> float:
    try:
        bound = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else -1.0
    except ValueError:
        bound = -1.0
    if not bound >= 0:
        raise TableError(f"{name} is {value!r}: give a number that is 0 or more, or leave it out")
    return bound
