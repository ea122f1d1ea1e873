"""The names and the filters of the advertising workload, written the way an advertising team writes them.

A filter is made of 3 to 6 *wishes*, each about another aspect of the impression (the place, the
content, the hour, …), so that it does not contradict itself. Two or three wishes are narrow and
come first; the rest are broad. Most filters ask for all of their wishes; about one in seven uses OR
or NOT.

The text is assembled aspect by aspect: one list comprehension for all rows that wish for it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.workloads.columns import Key, integers, uniform, weighted, zipf_rank

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from headgate.workloads.columns import Ints

    Wish = Callable[[Key], list[str]]


class Country(NamedTuple):
    """Hold a country's code, its main language and its cities, the largest first."""

    code: str
    language: str
    cities: tuple[str, ...]


START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday, the first of WEEKDAYS
DAYS = 28

CITIES_EACH = 5

COUNTRIES = (
    Country("US", "en", ("New York", "Los Angeles", "Chicago", "Houston", "Phoenix")),
    Country("IN", "hi", ("Mumbai", "Delhi", "Bengaluru", "Hyderabad", "Chennai")),
    Country("BR", "pt", ("Sao Paulo", "Rio de Janeiro", "Brasilia", "Salvador", "Fortaleza")),
    Country("GB", "en", ("London", "Birmingham", "Manchester", "Glasgow", "Leeds")),
    Country("DE", "de", ("Berlin", "Hamburg", "Munich", "Cologne", "Frankfurt")),
    Country("JP", "ja", ("Tokyo", "Yokohama", "Osaka", "Nagoya", "Sapporo")),
    Country("FR", "fr", ("Paris", "Marseille", "Lyon", "Toulouse", "Nice")),
    Country("MX", "es", ("Mexico City", "Tijuana", "Ecatepec", "Leon", "Puebla")),
    Country("IT", "it", ("Rome", "Milan", "Naples", "Turin", "Palermo")),
    Country("ES", "es", ("Madrid", "Barcelona", "Valencia", "Seville", "Zaragoza")),
    Country("CA", "en", ("Toronto", "Montreal", "Calgary", "Ottawa", "Edmonton")),
    Country("ID", "id", ("Jakarta", "Surabaya", "Bandung", "Medan", "Bekasi")),
    Country("TR", "tr", ("Istanbul", "Ankara", "Izmir", "Bursa", "Antalya")),
    Country("KR", "ko", ("Seoul", "Busan", "Incheon", "Daegu", "Daejeon")),
    Country("AU", "en", ("Sydney", "Melbourne", "Brisbane", "Perth", "Adelaide")),
    Country("NL", "nl", ("Amsterdam", "Rotterdam", "The Hague", "Utrecht", "Eindhoven")),
    Country("PL", "pl", ("Warsaw", "Krakow", "Lodz", "Wroclaw", "Poznan")),
    Country("AR", "es", ("Buenos Aires", "Cordoba", "Rosario", "Mendoza", "La Plata")),
    Country("SE", "sv", ("Stockholm", "Gothenburg", "Malmo", "Uppsala", "Vasteras")),
    Country("PT", "pt", ("Lisbon", "Porto", "Braga", "Coimbra", "Faro")),
    Country("CO", "es", ("Bogota", "Medellin", "Cali", "Barranquilla", "Cartagena")),
    Country("AT", "de", ("Vienna", "Graz", "Linz", "Salzburg", "Innsbruck")),
    Country("CH", "de", ("Zurich", "Geneva", "Basel", "Lausanne", "Bern")),
    Country("BE", "nl", ("Brussels", "Antwerp", "Ghent", "Charleroi", "Liege")),
    Country("DK", "da", ("Copenhagen", "Aarhus", "Odense", "Aalborg", "Esbjerg")),
    Country("NO", "no", ("Oslo", "Bergen", "Trondheim", "Stavanger", "Drammen")),
    Country("FI", "fi", ("Helsinki", "Espoo", "Tampere", "Vantaa", "Oulu")),
    Country("ZA", "en", ("Johannesburg", "Cape Town", "Durban", "Pretoria", "Soweto")),
    Country("CZ", "cs", ("Prague", "Brno", "Ostrava", "Plzen", "Liberec")),
    Country("GR", "el", ("Athens", "Thessaloniki", "Patras", "Heraklion", "Larissa")),
    Country("CL", "es", ("Santiago", "Valparaiso", "Concepcion", "La Serena", "Antofagasta")),
    Country("IE", "en", ("Dublin", "Cork", "Limerick", "Galway", "Waterford")),
    Country("NZ", "en", ("Auckland", "Christchurch", "Wellington", "Hamilton", "Dunedin")),
    Country("HU", "hu", ("Budapest", "Debrecen", "Szeged", "Miskolc", "Pecs")),
    Country("RO", "ro", ("Bucharest", "Cluj-Napoca", "Timisoara", "Iasi", "Constanta")),
    Country("PE", "es", ("Lima", "Arequipa", "Trujillo", "Chiclayo", "Cusco")),
    Country("SG", "en", ("Singapore", "Jurong East", "Tampines", "Woodlands", "Bedok")),
    Country("HR", "hr", ("Zagreb", "Split", "Rijeka", "Osijek", "Zadar")),
    Country("SI", "sl", ("Ljubljana", "Maribor", "Celje", "Kranj", "Koper")),
    Country("EE", "et", ("Tallinn", "Tartu", "Narva", "Parnu", "Viljandi")),
)

LANGUAGES = tuple(dict.fromkeys(country.language for country in COUNTRIES))

DEVICES = ("phone", "desktop", "tablet", "tv")
SYSTEMS = ("android", "ios", "windows", "macos", "linux", "tvos")
BROWSERS = ("chrome", "safari", "edge", "firefox", "samsung", "opera")
CONNECTIONS = ("wifi", "5g", "4g", "cable", "3g")
POSITIONS = ("top", "sidebar", "in-article", "footer", "interstitial", "native")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

CATEGORIES = (
    "news", "sport", "video", "shopping", "games", "music", "finance", "weather", "travel", "food",
    "technology", "fashion", "health", "cars", "film", "home", "science", "family", "beauty", "jobs",
    "property", "education", "pets", "gardening", "photography", "books", "politics", "history", "art",
    "outdoors", "gambling", "dating", "alcohol", "tobacco", "religion", "weapons",
)  # fmt: skip

TOPICS = (
    "today", "best-of", "review", "guide", "video", "live", "deals", "opinion", "interview", "ranking",
    "comparison", "beginner", "premium", "local", "archive", "forum", "photos", "release", "preview",
    "recipe",
)  # fmt: skip

KINDS = ("story", "list", "gallery", "clip", "product", "question")

INTERESTS = (
    "football", "cooking", "smartphones", "series", "fitness", "city-breaks", "online-games", "investing",
    "running", "interior-design", "electric-cars", "hiking", "coffee", "sneakers", "skincare", "basketball",
    "cycling", "podcasts", "vegan-food", "house-plants", "wine", "yoga", "camping", "dogs", "cats",
    "gadgets", "photography", "tennis", "formula-1", "board-games", "crime-novels", "jazz",
    "classical-music", "festivals", "skiing", "surfing", "sailing", "fishing", "gardening", "baking", "diy",
    "antiques", "watches", "jewellery", "parenting", "weddings", "languages", "university", "startups",
    "crypto", "real-estate", "insurance", "cruises", "luxury-hotels", "theatre", "museums", "astronomy",
    "climate", "volunteering", "chess",
)  # fmt: skip

SEGMENTS = (
    "bargain-hunter", "commuter", "new-parent", "student", "home-owner", "gamer", "frequent-flyer",
    "foodie", "early-adopter", "retiree", "small-business", "sports-fan", "car-buyer", "fashion-fan",
    "pet-owner", "music-lover", "film-buff", "health-minded", "outdoor-type", "luxury-buyer", "job-seeker",
    "diy-builder", "investor", "traveller-family", "traveller-solo", "book-reader", "eco-minded", "mover",
    "bride-to-be", "collector",
)  # fmt: skip

# A site's number says nothing of its popularity: 797 and 2,000 have no common factor.
SITES = tuple(f"site-{797 * rank % 2000:04}.example" for rank in range(2000))


_BY_WISHES = (0, 0, 0, 12, 35, 34, 19)
_BY_NARROW = (0, 0, 40, 60)
_BY_SHAPE = (90, 3, 5, 2)
_MOST = len(_BY_WISHES) - 1


def filters(rows: Ints, seed: int, table: str) -> list[str]:
    """Write the filter of each row."""

    def key(column: str) -> Key:
        return Key(seed, table, column, rows)

    wishes = weighted(key("wishes"), _BY_WISHES)
    narrow = np.minimum(weighted(key("narrow"), _BY_NARROW), wishes - 1)
    parts = np.full((len(rows), _MOST), "", dtype=object)
    _fill(parts, _NARROW, key, np.zeros_like(wishes), narrow)
    _fill(parts, _BROAD, key, narrow, wishes)
    shapes = weighted(key("shape"), _BY_SHAPE)
    return [
        _join(shape, texts[:count])
        for shape, count, texts in zip(shapes.tolist(), wishes.tolist(), parts.tolist(), strict=True)
    ]


def _fill(
    parts: NDArray[np.object_],
    aspects: dict[Wish, float],
    key: Callable[[str], Key],
    start: Ints,
    stop: Ints,
) -> None:
    """Write different wishes into the places from `start` up to `stop` of each row."""
    # Exponential races (Efraimidis and Spirakis 2006) sample without replacement by weight.
    finish = [
        -np.log1p(-uniform(key(wish.__name__.lstrip("_")))) / weight for wish, weight in aspects.items()
    ]
    places = start + np.argsort(np.argsort(np.stack(finish), axis=0), axis=0)
    for wish, position in zip(aspects, places, strict=True):
        (chosen,) = np.nonzero(position < stop)
        own = key(wish.__name__.lstrip("_"))
        texts = wish(own._replace(rows=own.rows[chosen]))
        parts[chosen, position[chosen]] = np.array(texts, dtype=object)


def _join(shape: int, wishes: list[str]) -> str:
    """Join the wishes of one filter; the first two are narrow."""
    if shape == 0:
        return " AND ".join(wishes)
    *narrow, last = wishes[:3]
    rest = wishes[3:]
    both = " AND ".join(narrow)
    if shape == 1 or not rest:
        return f"{both} AND NOT ({' AND '.join([last, *rest])})"
    if shape == 2:
        return f"{both} AND ({last} OR {' AND '.join(rest)})"
    return f"({both} AND {last}) OR ({both} AND {' AND '.join(rest)})"


def _place(key: Key) -> list[str]:
    forms = {
        "country = '{0}'": 34,
        "country IN ({3})": 26,
        "city = '{1}'": 25,
        "country = '{0}' AND city IN ('{1}', '{2}')": 10,
        "language = '{4}'": 3,
    }
    codes = [each.code for each in COUNTRIES]
    country = zipf_rank(key, len(COUNTRIES), 0.7, draw=2)
    city = country * CITIES_EACH + integers(key, 0, CITIES_EACH - 1, draw=3)
    cities = [name for each in COUNTRIES for name in each.cities]
    some = _some(key, codes, 0.4, (2, 4), draw=5)
    language = _one(key, LANGUAGES, 0.6, draw=4)
    return _write(
        key, forms, _take(codes, country), _take(cities, city), _take(cities, city + 1), some, language
    )


def _content(key: Key) -> list[str]:
    forms = {
        "category = '{0}'": 40,
        "category IN ({2})": 25,
        "path LIKE '/{0}/{1}/%'": 22,
        "path LIKE '/{0}/%'": 8,
        "path LIKE '%/{1}/%'": 5,
    }
    category, topic = _one(key, CATEGORIES, 0.5, draw=2), _one(key, TOPICS, 0.4, draw=3)
    return _write(key, forms, category, topic, _some(key, CATEGORIES, 0.4, (2, 4), draw=4))


def _site(key: Key) -> list[str]:
    forms = {"site = '{0}'": 40, "site IN ({1})": 45, "site LIKE '{0:.7}%'": 15}
    return _write(key, forms, _one(key, SITES, 0.7, draw=2), _some(key, SITES, 0.7, (3, 8), draw=3))


def _interests(key: Key) -> list[str]:
    forms = {"array_contains(interests, '{0}')": 65, "arrays_overlap(interests, array({1}))": 35}
    return _write(key, forms, _one(key, INTERESTS, 0.4, draw=2), _some(key, INTERESTS, 0.3, (2, 3), draw=3))


def _segment(key: Key) -> list[str]:
    forms = {"user.segment = '{0}'": 60, "user.segment IN ({1})": 40}
    return _write(key, forms, _one(key, SEGMENTS, 0.5, draw=2), _some(key, SEGMENTS, 0.4, (2, 3), draw=3))


def _named(attribute: str, names: Sequence[str]) -> Wish:
    """Wish for one or some of the names of an attribute, or for none of them."""
    forms = {" = '{0}'": 50.0, " IN ({1})": 30.0, " != '{0}'": 12.0, " NOT IN ({1})": 8.0}
    wished = {attribute + form: weight for form, weight in forms.items()}

    def wish(key: Key) -> list[str]:
        return _write(key, wished, _one(key, names, 0.5, draw=2), _some(key, names, 0.5, (2, 3), draw=3))

    wish.__name__ = attribute
    return wish


def _weekday(key: Key) -> list[str]:
    forms = {
        "weekday NOT IN ('Saturday', 'Sunday')": 30,
        "weekday IN ('Saturday', 'Sunday')": 30,
        "weekday IN ({1})": 25,
        "weekday != '{0}'": 15,
    }
    return _write(key, forms, _one(key, WEEKDAYS, 0.0, draw=2), _some(key, WEEKDAYS, 0.0, (2, 4), draw=3))


def _hour(key: Key) -> list[str]:
    start = integers(key, 0, 20, draw=2)
    stop = np.minimum(start + integers(key, 2, 10, draw=3), 23)
    return _write(key, {"hour BETWEEN {0} AND {1}": 80, "hour >= {0}": 20}, start.tolist(), stop.tolist())


def _age(key: Key) -> list[str]:
    forms = {
        "age BETWEEN {0} AND {1}": 45,
        "age >= {0}": 25,
        "age < {1}": 12,
        "age > {0} AND age <= {1}": 12,
        "age IS NOT NULL": 4,
        "age IS NULL": 2,
    }
    low = 18 + 5 * integers(key, 0, 8, draw=2)
    high = low + 6 + integers(key, 0, 20, draw=3)
    return _write(key, forms, low.tolist(), high.tolist())


def _income(key: Key) -> list[str]:
    forms = {
        "income >= {0}": 45,
        "income BETWEEN {0} AND {1}": 35,
        "income < {1}.0": 14,
        "income IS NOT NULL": 4,
        "income IS NULL": 2,
    }
    low = 5000 * integers(key, 2, 10, draw=2)
    high = low + 5000 * integers(key, 1, 9, draw=3)
    return _write(key, forms, low.tolist(), high.tolist())


def _viewability(key: Key) -> list[str]:
    percent = integers(key, 40, 95, draw=2).tolist()
    return _write(key, {"viewability >= 0.{0}": 75, "viewability > 0.{0}": 25}, percent)


def _price(key: Key) -> list[str]:
    forms = {"price_floor <= {0}": 60, "price_floor < {0}": 25, "price_floor BETWEEN {0} AND {1}": 15}
    low = np.round(0.1 + 1.9 * uniform(key, draw=2) ** 2, 2)
    high = np.round(low + 0.5 + uniform(key, draw=3), 2)
    return _write(key, forms, low.tolist(), high.tolist())


def _member(key: Key) -> list[str]:
    forms = {
        "is_member": 30,
        "is_member = true": 40,
        "is_member = false": 17,
        "is_member IS NULL": 5,
        "is_member IS NOT NULL": 8,
    }
    return _write(key, forms, [""] * len(key.rows))


def _blocked(key: Key) -> list[str]:
    category = _one(key, CATEGORIES, 0.0, draw=2)
    return _write(key, {"NOT array_contains(blocked_categories, '{0}')": 1}, category)


def _score(key: Key) -> list[str]:
    percent = integers(key, 20, 95, draw=2).tolist()
    return _write(key, {"user.score >= 0.{0}": 75, "user.score > 0.{0}": 25}, percent)


def _visits(key: Key) -> list[str]:
    forms = {
        "user.visits >= {0}": 50,
        "user.visits < {0}": 20,
        "user.visits BETWEEN {0} AND {1}": 25,
        "user.visits != 0": 5,
    }
    low = integers(key, 1, 16, draw=2)
    return _write(key, forms, low.tolist(), (low + 8).tolist())


def _period(key: Key) -> list[str]:
    forms = {
        "time >= {0}": 30,
        "time BETWEEN {0} AND {1}": 25,
        "time >= {0} AND time < {1}": 30,
        "time < {1}": 15,
    }
    days = [f"TIMESTAMP '{START + timedelta(days=day):%Y-%m-%d %H:%M:%S}'" for day in range(DAYS + 1)]
    first = integers(key, 0, DAYS - 3, draw=2)
    last = np.minimum(first + integers(key, 3, 15, draw=3), DAYS)
    return _write(key, forms, _take(days, first), _take(days, last))


# The weights say how often a filter makes the wish.
_NARROW: dict[Wish, float] = {_place: 5, _content: 4, _site: 3, _interests: 3, _segment: 3}
_BROAD: dict[Wish, float] = {
    _named("device", DEVICES): 3, _named("os", SYSTEMS): 2, _named("browser", BROWSERS): 1,
    _named("connection", CONNECTIONS): 1.5, _named("position", POSITIONS): 3, _weekday: 3, _hour: 4, _age: 6,
    _income: 3, _viewability: 4, _price: 4, _member: 2, _blocked: 1.2, _score: 2, _visits: 3, _period: 4,
}  # fmt: skip


def _write(key: Key, forms: Mapping[str, float], *values: Sequence[object]) -> list[str]:
    """Write each row's wish in one of the forms, filled with the row's values."""
    chosen = weighted(key, list(forms.values()), draw=1).tolist()
    fill = [form.format for form in forms]
    return [fill[form](*row) for form, *row in zip(chosen, *values, strict=True)]


def _one(key: Key, names: Sequence[str], exponent: float, draw: int) -> list[str]:
    return _take(names, zipf_rank(key, len(names), exponent, draw=draw))


def _some(key: Key, names: Sequence[str], exponent: float, between: tuple[int, int], draw: int) -> list[str]:
    """List so many names, quoted; fewer when a name was drawn twice."""
    low, high = between
    counts = integers(key, low, high + 1, draw=draw)
    drawn = [zipf_rank(key, len(names), exponent, draw=draw + 1 + i).tolist() for i in range(high)]
    quoted = [f"'{name}'" for name in names]
    return [
        ", ".join([quoted[rank] for rank in sorted(set(ranks[:count]))])
        for count, *ranks in zip(counts.tolist(), *drawn, strict=True)
    ]


def _take(names: Sequence[str], at: Ints) -> list[str]:
    return [names[rank] for rank in at.tolist()]
