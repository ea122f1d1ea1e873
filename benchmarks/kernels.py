"""What a process pays before its first answer, and code for the baseline against the processor's own."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.results import Result

MATCHES = {
    "records": """
engine = Engine.build([Subscription("s", "age > 30 AND topic IN ('news', 'sport')")])
assert engine.match(Event("e", {"age": 35, "topic": "news"})) == ["s"]
""",
    "rdf": """
pattern = "ASK { ?x a <urn:Art> ; <urn:year> ?y FILTER(?y > 2000) }"
engine = Engine.build([Subscription("s", pattern, "sparql")])
event = Event("e", "<urn:x> a <urn:Art> ; <urn:year> 2001 .", content_type="text/turtle")
assert engine.match(event) == ["s"]
""",
    "xml": """
engine = Engine.build([Subscription("s", "//news[company = 'ACME']//headline", "xpath")])
page = "<all><news><company>ACME</company><headline>up</headline></news></all>"
assert engine.match(Event("e", page, content_type="application/xml")) == ["s"]
""",
    "graph": """
engine = Engine.build(
    [Subscription("s", "age > 30", node="net")],
    nodes=[Node("pub"), Node("net", "topic = 'sport'")],
    edges=[Edge("pub", "net")],
)
assert engine.match(Event("e", {"age": 35, "topic": "sport"}, source="pub")) == ["s"]
""",
    "plan": """
from headgate import Dissemination
views = [
    Subscription("all", "//news{id}[author{val}]//title{val}", "xpath"),
    Subscription("titles", "//news//title{val}", "xpath"),
]
news = Event("e", "<news><author>Bo</author><title>Up</title></news>", content_type="xml")
assert Dissemination.build(views, [news]).feeding("titles").inputs == ()
""",
}
"""A first answer of each kind."""
NAMES = "from headgate import Edge, Engine, Event, Node, Subscription\n"
SPENT = "SPENT "
UP_TO_HERE = f"\nimport os; print({SPENT!r} + str(sum(os.times()[:4])))"
"""What ends a process comes after what it is for."""
COMMAND = "import sys; from headgate.cli import main; sys.argv[0] = 'headgate'; main()"
TIMES = {"µs", "us", "ms", "s", "ns"}
AREAS = {"records": 3, "graph": 3, "ranking": 3, "rdf": 3, "xml": 8}
"""How often each is run: that of XML takes seconds, and its few figures vary by a tenth."""


def run(size: str) -> list[Result]:
    """Measure what a process pays; `full` also without compiled kernels, and for two processors."""
    measure = best if size == "full" else cpu
    results = [
        Result("from headgate import Engine", measure("from headgate import Engine"), "CPU s", goal=0.6),
        Result(
            "headgate compile, of a file that is not there",
            measure(COMMAND, "compile", "--subscriptions", "nope.jsonl", "--output", "nope", code=1),
            "CPU s",
            goal=0.6,
        ),
    ]
    with tempfile.TemporaryDirectory() as empty:
        for room, code in MATCHES.items():
            cold = None
            if size == "full":
                cold = cpu(NAMES + code + UP_TO_HERE, cache=f"{empty}/{room}")
            goal = None if room == "plan" else 1.5
            ready = measure(NAMES + code + UP_TO_HERE)
            name = f"from the start of a process to its first answer, {room}"
            results.append(Result(name, ready, "CPU s", cold, "compiling", goal))
        if size == "full":
            results += compare(Path(empty))
    return results


def best(*arguments: str, code: int = 0) -> float:
    """Return the least CPU time of three processes."""
    return min(cpu(*arguments, code=code) for _ in range(3))


def cpu(*arguments: str, code: int = 0, cache: str | None = None) -> float:
    """Return the CPU time of a process of Python, with all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", *arguments]
    environment = {**os.environ, **({"NUMBA_CACHE_DIR": cache} if cache else {})}
    # As for a package that was installed, Python keeps modules in its own form.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    if done.stdout.startswith(SPENT):
        return float(done.stdout.removeprefix(SPENT))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(folder: Path) -> list[Result]:
    """Run small benchmarks with code for the baseline and for this processor, in turn; compare the best."""
    native = {"NUMBA_CACHE_DIR": str(folder / "native")}
    cpu(COMMAND, "warm", "--native", "--quiet", cache=native["NUMBA_CACHE_DIR"])
    results = []
    for area, rounds in AREAS.items():
        seen: dict[str, list[dict[str, float]]] = {"baseline": [], "native": []}
        for _ in range(rounds):
            seen["baseline"].append(figures(area, folder))
            seen["native"].append(figures(area, folder, **native))
        least = {
            way: {name: min(each[name] for each in runs) for name in runs[0]} for way, runs in seen.items()
        }
        ratios = [least["baseline"][name] / least["native"][name] for name in least["native"]]
        name = f"baseline against this processor's code, {area}: median of {len(ratios)} figures"
        results.append(Result(name, median(ratios), "times", goal=1.05))
    return results


def figures(area: str, folder: Path, **environment: str) -> dict[str, float]:
    """Return the figures of a small benchmark that are times."""
    file = folder / "figures.json"
    command = [sys.executable, "-m", "benchmarks", area, "--size", "quick", "--json", str(file)]
    subprocess.run(command, env={**os.environ, **environment}, capture_output=True, check=True)
    listed = json.loads(file.read_text("utf-8"))
    rows = listed["results"] if isinstance(listed, dict) else listed
    return {
        f"{number} {row['name']}": row["value"]
        for number, row in enumerate(rows)
        if any(part in TIMES for part in row["unit"].split()) and row["value"] > 0
    }
