"""The names of the advertising workload, most popular first, and the days that it plays on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple


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
