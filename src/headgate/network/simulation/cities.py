"""Where sites may be: nine cities of France and Luxembourg, and the wires between them.

The paper's sites were machines of Grid'5000 in "nine major cities across France and Luxembourg". It does not
name them, nor tell their delays. These nine had sites of Grid'5000 then; everything else here is assumed:

    way      the great circle between two cities, times 1.5: cables follow railways and go by nodes
    light    200 km in a millisecond of fibre
    nodes    0.5 ms for what lies between a machine and the backbone, once for each message
    speed    1 Gbit/s, the network card of a machine: the backbone, at 10 Gbit/s, is seldom the narrowest

That makes 0.6 ms in a city, 2 to 8 ms between cities: twice that, there and back, is what pings of such a
network show (some 5 to 17 ms).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from headgate.errors import TableError
from headgate.network.simulation.model import Links

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from headgate.network.simulation.model import Ints

CITIES = {
    "Lyon": (45.76, 4.84),
    "Bordeaux": (44.84, -0.58),
    "Grenoble": (45.19, 5.72),
    "Lille": (50.63, 3.06),
    "Luxembourg": (49.61, 6.13),
    "Nancy": (48.69, 6.18),
    "Rennes": (48.11, -1.68),
    "Sophia Antipolis": (43.62, 7.05),
    "Toulouse": (43.60, 1.44),
}
"""Latitude and longitude; the source is in the first."""
_RADIUS, _DETOUR, _LIGHT, _NODES, _SHORT = 6_371.0, 1.5, 200_000.0, 0.5e-3, 0.1e-3
GIGABIT = 125e6
"""Bytes a second."""


def nine_cities() -> Links:
    """Return the wires between the nine cities.

    >>> links = nine_cities()
    >>> (1e3 * links.delay[0, :4]).round(1).tolist()
    [0.6, 3.8, 1.2, 4.7]
    """
    places = list(CITIES.values())
    delay = np.array([[_NODES + max(_SHORT, _way(a, b) / _LIGHT) for b in places] for a in places])
    return Links(tuple(CITIES), delay, np.full_like(delay, GIGABIT))


def one_place(delay: float = 1e-4, speed: float = 1e9) -> Links:
    """Return the wires of sites that are all in one place: by default on one machine."""
    return Links(("here",), np.full((1, 1), delay), np.full((1, 1), speed))


def _way(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Return the kilometres of cable between two places."""
    (north_a, east_a), (north_b, east_b) = (tuple(map(math.radians, each)) for each in (a, b))
    half = (
        math.sin((north_b - north_a) / 2) ** 2
        + math.cos(north_a) * math.cos(north_b) * math.sin((east_b - east_a) / 2) ** 2
    )
    return _DETOUR * 2 * _RADIUS * math.asin(math.sqrt(half))


def spread(stations: int, links: Links) -> Ints:
    """Deal stations out to the cities, one after another; the source is in the first."""
    return np.arange(stations, dtype=np.int64) % len(links.cities)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    cities: list[str]
    delay: list[list[float]]
    speed: float | list[list[float]] = GIGABIT
    sites: dict[str, str] = {}


def read_links(path: Path) -> tuple[Links, Mapping[str, str]]:
    """Read cities, delays, speeds, and the city of each site, from a file of JSON."""
    try:
        given = msgspec.json.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise TableError(
            f"{path}: {error}: give `cities`, and `delay` in seconds from each to each"
        ) from None
    count = len(given.cities)
    speed: Any = given.speed
    tables = [("delay", given.delay)] + ([("speed", speed)] if isinstance(speed, list) else [])
    for name, table in tables:
        if len(table) != count or any(len(row) != count for row in table):
            raise TableError(f"{path}: `{name}` has not {count} rows of {count} numbers, one for each city")
    for site, city in given.sites.items():
        if city not in given.cities:
            raise TableError(f"{path}: site {site!r} is in {city!r}, which is not among the cities: add it")
    delay = np.array(given.delay, np.float64).reshape(count, count)
    links = Links(
        tuple(given.cities), delay, np.broadcast_to(np.array(speed, np.float64), delay.shape).copy()
    )
    if not count:
        raise TableError(f"{path}: `cities` is empty: name one at least")
    links.check()
    return links, given.sites


def cities_of(names: Sequence[str], links: Links, sites: Mapping[str, str]) -> Ints:
    """Return the city of each station: as is said for its name, or as `spread` deals."""
    numbers = {city: number for number, city in enumerate(links.cities)}
    found = spread(len(names), links)
    for place, name in enumerate(names):
        if name in sites:
            found[place] = numbers[sites[name]]
    return found
