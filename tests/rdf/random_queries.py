"""Random whole queries over the vocabulary of `random_patterns`, of every form that filters may have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.rdf.language.model import SUBCLASS, SUBPROPERTY
from tests.rdf.random_patterns import CLASSES, COMMON, NODES, PROPERTIES, random_literal

if TYPE_CHECKING:
    import random

VARIABLES = ("?x", "?y", "?z", "?u")
NUMBERS = ("ABS", "CEIL", "FLOOR", "ROUND")
STRINGS = ("STRLEN", "UCASE", "LCASE", "ENCODE_FOR_URI", "MD5", "SHA1", "SHA256", "SHA384", "SHA512")
TIMES = ("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ")
KINDS = ("isIRI", "isURI", "isBlank", "isLiteral", "isNumeric")
TWO = ("CONTAINS", "STRSTARTS", "STRENDS", "STRBEFORE", "STRAFTER", "LANGMATCHES")
CASTS = ("integer", "decimal", "double", "float", "boolean", "string", "dateTime")
AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")


class RandomQueries:
    """Draws queries. With a taxonomy, no triple can see the taxonomy's own statements by accident."""

    def __init__(self, rng: random.Random, *, taxonomy: bool = False) -> None:
        self.rng = rng
        self.taxonomy = taxonomy
        self.depth = 0
        self.fresh = 0

    def query(self) -> str:
        """Draw a query."""
        form = self.rng.choice(("ASK", "ASK", "SELECT *", "SELECT", "CONSTRUCT", "GROUP", "HAVING"))
        group = self.group()
        if form == "ASK":
            return f"ASK {group}"
        if form == "SELECT *":
            return f"SELECT {self.rng.choice(('', 'DISTINCT', 'REDUCED'))} * {group}{self.modifiers()}"
        if form == "SELECT":
            names = self.rng.sample(VARIABLES, self.rng.randint(1, 2))
            computed = f"({self.value()} AS ?computed)" if self.rng.random() < 0.3 else ""
            return f"SELECT {' '.join(names)} {computed} WHERE {group}{self.modifiers()}"
        if form == "CONSTRUCT":
            template = f"{self.rng.choice(VARIABLES)} {self.rng.choice(PROPERTIES)} {self.node()}"
            return f"CONSTRUCT {{ {template} }} WHERE {group}{self.modifiers()}"
        name = self.rng.choice(VARIABLES)
        counted = (
            f"{self.rng.choice(AGGREGATES)}({self.rng.choice(('', 'DISTINCT '))}{self.rng.choice(VARIABLES)})"
        )
        if form == "GROUP":
            return f"SELECT {name} ({counted} AS ?n) {group} GROUP BY {name}"
        grouped = f" GROUP BY {name}" if self.rng.random() < 0.6 else ""
        sign = self.rng.choice((">", ">=", "=", "<"))
        counted = f"COUNT({self.rng.choice(('*', *VARIABLES))})"
        return f"SELECT ({counted} AS ?n) {group}{grouped} HAVING ({counted} {sign} {self.rng.randint(0, 2)})"

    def modifiers(self) -> str:
        """Draw what stands behind a group."""
        found = ""
        if self.rng.random() < 0.3:
            found += f" ORDER BY {self.rng.choice(('', 'DESC'))}({self.rng.choice(VARIABLES)})"
        if self.rng.random() < 0.2:
            found += f" LIMIT {self.rng.randint(0, 3)}"
        if self.rng.random() < 0.2:
            found += f" OFFSET {self.rng.randint(0, 2)}"
        if self.rng.random() < 0.1:
            found += f" {self.values()}"
        return found

    def group(self, least: int = 1) -> str:
        """Draw a group."""
        self.depth += 1
        parts = [self.triples() for _ in range(self.rng.randint(least, 2))]
        for _ in range(self.rng.choice((0, 1, 1, 2)) if self.depth < 4 else 0):
            parts.insert(self.rng.randint(0, len(parts)), self.part())
        self.depth -= 1
        return "{ " + " ".join(parts) + " }"

    def part(self) -> str:
        """Draw what is no triple."""
        kind = self.rng.randrange(11)
        if kind <= 1:
            return f"OPTIONAL {self.group()}"
        if kind <= 3:
            return " UNION ".join(self.group() for _ in range(self.rng.randint(2, 3)))
        if kind == 4:
            return f"MINUS {self.group()}"
        if kind <= 6:
            return f"FILTER ({self.condition()})"
        if kind == 7:
            return f"FILTER {self.rng.choice(('', 'NOT '))}EXISTS {self.group()}"
        if kind == 8:
            self.fresh += 1
            name = f"?bound{self.fresh}" if self.rng.random() < 0.7 else self.rng.choice(VARIABLES)
            return f"BIND({self.value()} AS {name})"
        if kind == 9:
            return self.values()
        if self.rng.random() < 0.5:
            return self.group()
        names = self.rng.sample(VARIABLES, self.rng.randint(1, 2))
        behind = self.rng.choice(("", "", " LIMIT 1", f" GROUP BY {' '.join(names)}"))
        return f"{{ SELECT {' '.join(names)} {self.group()}{behind} }}"

    def values(self) -> str:
        """Draw a table."""
        if self.rng.random() < 0.6:
            terms = " ".join(self.constant() for _ in range(self.rng.randint(1, 3)))
            return f"VALUES {self.rng.choice(VARIABLES)} {{ {terms} }}"
        rows = "".join(
            f"({' '.join(self.rng.choice(('UNDEF', self.constant(), self.constant())) for _ in '12')})"
            for _ in range(self.rng.randint(1, 2))
        )
        return f"VALUES ({' '.join(self.rng.sample(VARIABLES, 2))}) {{ {rows} }}"

    def triples(self) -> str:
        """Draw triples of one subject."""
        subject = self.rng.choice((*VARIABLES, *VARIABLES, *NODES[:2]))
        found = f"{subject} {self.verb()} {self.node()}"
        if self.rng.random() < 0.3:
            found += f" ; {self.verb()} {self.node()}"
        if self.rng.random() < 0.2:
            found += f", {self.node()}"
        return found + " ."

    def verb(self) -> str:
        """Draw a property, a variable or a path."""
        drawn = self.rng.random()
        if drawn < 0.5:
            return self.rng.choice(PROPERTIES)
        if drawn < 0.6:
            return "a"
        if drawn < 0.7 and not self.taxonomy:
            return self.rng.choice(VARIABLES)
        if self.taxonomy and drawn < 0.85:
            below = self.rng.choice((f"{SUBCLASS}*", f"{SUBCLASS}+", f"{SUBCLASS}?", f"{SUBPROPERTY}*"))
            return self.rng.choice((f"a/{SUBCLASS}*", f"{self.rng.choice(PROPERTIES)}/{below}"))
        return self.path(2)

    def path(self, depth: int) -> str:
        """Draw a path."""
        name = self.rng.choice((*PROPERTIES, "a"))
        if depth == 0:
            return name
        inner = [self.path(depth - 1) for _ in range(2)]
        found: str = self.rng.choice(
            (
                name,
                f"^({inner[0]})",
                f"({inner[0]})/({inner[1]})",
                f"({inner[0]}|{inner[1]})",
                f"({inner[0]})+",
                *(() if self.taxonomy else (f"({inner[0]})*", f"({inner[0]})?")),
                *(() if self.taxonomy else (f"!{name}", f"!(^{name}|{self.rng.choice(PROPERTIES)})")),
            )
        )
        return found

    def node(self) -> str:
        """Draw an object."""
        drawn = self.rng.random()
        if drawn < 0.5:
            return self.rng.choice(VARIABLES)
        if drawn < 0.6:
            return f"[ {self.rng.choice(PROPERTIES)} {self.rng.choice(VARIABLES)} ]"
        if drawn < 0.63:
            return f"( {self.constant()} {self.rng.choice(VARIABLES)} )"
        return self.constant()

    def constant(self) -> str:
        """Draw a term."""
        return self.rng.choice((*NODES[:2], *CLASSES[:3], *COMMON[:5], random_literal(self.rng)))

    def condition(self) -> str:
        """Draw a condition."""
        drawn = self.rng.random()
        name = self.rng.choice(VARIABLES)
        if drawn < 0.3:
            return f"{name} {self.rng.choice(('=', '!=', '<', '<=', '>', '>='))} {self.value()}"
        if drawn < 0.4:
            return f"{name} {self.rng.choice(('IN', 'NOT IN'))} ({self.constant()}, {self.constant()})"
        if drawn < 0.5:
            return f"{self.condition()} {self.rng.choice(('&&', '||'))} {self.condition()}"
        if drawn < 0.55:
            return f"!({self.condition()})"
        if drawn < 0.65:
            return f"{self.rng.choice(KINDS)}({name})"
        if drawn < 0.7:
            return f"BOUND({name})"
        if drawn < 0.75:
            return f"sameTerm({name}, {self.value()})"
        if drawn < 0.85:
            flags = self.rng.choice(("", ', "i"'))
            return f'REGEX(STR({name}), "{self.rng.choice(("a", "^a", "b$", "a|b", "[0-9]+", "A"))}"{flags})'
        if drawn < 0.9 and self.depth < 3:
            return f"{self.rng.choice(('', 'NOT '))}EXISTS {self.group()}"
        return self.value()

    def value(self, depth: int = 2) -> str:
        """Draw a value."""
        name = self.rng.choice(VARIABLES)
        if depth == 0 or self.rng.random() < 0.3:
            return self.rng.choice((name, self.constant()))
        one, other = self.value(depth - 1), self.value(depth - 1)
        return self.rng.choice(
            (
                f"({one} {self.rng.choice('+-*/')} {other})",
                f"(- {one})",
                f"{self.rng.choice(NUMBERS)}({one})",
                f"{self.rng.choice(STRINGS)}(STR({one}))",
                f"{self.rng.choice(TIMES)}({one})",
                f"{self.rng.choice(TWO)}(STR({one}), STR({other}))",
                f"<http://www.w3.org/2001/XMLSchema#{self.rng.choice(CASTS)}>({one})",
                f"IF({one}, {other}, {name})",
                f"COALESCE({one}, {other})",
                f"CONCAT(STR({one}), STR({other}))",
                f"SUBSTR(STR({one}), 1, 2)",
                f'REPLACE(STR({one}), "a", "b")',
                f'STRLANG(STR({one}), "en")',
                f"STRDT(STR({one}), <http://www.w3.org/2001/XMLSchema#integer>)",
                f"IRI(STR({one}))",
                f"{self.rng.choice(('STR', 'LANG', 'DATATYPE', 'isIRI'))}({one})",
            )
        )
