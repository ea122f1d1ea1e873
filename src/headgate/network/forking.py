"""Servers and sites, forked from one process that has loaded everything, so that each starts at once.

It reads a line of JSON for each, the settings, and answers with a line: its process and its address, or why
it does not run. They end when their parent does.

They share the memory of what was loaded, until they write to it: a page of it is copied then, for a counter
of references in it as for anything else. So what each of them adds is kept together, on pages of their own:

    one heap for all threads, and what is large apart from it, so that it goes back to the system
    holes in the pages that are shared are filled before
    all code has run before, if there will be many of them (`--warm`)
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import json
import os
import signal
import sys
from typing import Any

from headgate.service.maintenance import give_back

_PATIENCE = 60.0
"""Seconds that one may take to come up."""
_MALLOC = {-8: 1, -3: 64 << 10, -1: 128 << 10}
"""M_ARENA_MAX: one heap. M_MMAP_THRESHOLD, M_TRIM_THRESHOLD: bytes that go back when they are free."""
_HOLES = 256 << 10
"""Bytes of each size that are used up."""
_FILLED: list[object] = []
WARM = "--warm"
"""The option that has a small network run before."""
SITE = "site"
"""The setting that makes a server a site: the tenant of its results."""

_JOINED: dict[str, tuple[str, str, str, Any, str]] = {
    "sql": ("a = 1", "TRUE", "a = 1 AND b = 2", {"a": 1, "b": 2}, "application/json"),
    # RDF is read by a process of its own, which no two may share.
    "sparql": (
        "SELECT * { ?p <urn:a> ?a }",
        "SELECT * { ?p <urn:b> ?b }",
        "SELECT * { ?p <urn:a> ?a ; <urn:b> ?b }",
        None,
        "text/turtle",
    ),
    "xpath": (
        "//a{id}[b{val}]",
        "//a{id}[c{val}]",
        "//a{id}[b{val}][c{val}]",
        "<x><a><b>1</b><c>2</c></a></x>",
        "application/xml",
    ),
}
"""Two views of each kind, a third that is computed from them, and a document."""


def _serve(settings: dict[str, Any], told: int) -> None:
    """Be a server, in a child. One that does not come up tells where it stands, and ends."""
    from headgate.errors import HeadgateError
    from headgate.network.extension import SiteExtension
    from headgate.service.running import Running, set_up_log
    from headgate.service.settings import ServiceSettings

    # PR_SET_PDEATHSIG: when the parent is gone, so is this one.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    faulthandler.dump_traceback_later(_PATIENCE, exit=True)

    def tell(answer: dict[str, Any]) -> None:
        faulthandler.cancel_dump_traceback_later()
        os.write(told, json.dumps({"pid": os.getpid(), **answer}).encode() + b"\n")
        os.close(told)

    set_up_log("text")
    site = settings.pop(SITE, None)
    try:
        running = Running(ServiceSettings(**settings), None if site is None else SiteExtension(site))
    except HeadgateError as error:
        tell({"error": str(error)})
        return
    running.run(lambda address: tell({"address": address}))


def _load() -> None:
    """Load what every site needs, by using it once: what is loaded later is shared by none."""
    from headgate import AsyncClient, Engine, Event
    from headgate.contents.registry import contents_of
    from headgate.core.machine import EXTRAS, lacking
    from headgate.network import extension, site  # noqa: F401
    from headgate.network.assignment import SOURCE, Assignment, Input, View
    from headgate.network.evaluation import Evaluation
    from headgate.service.running import load

    load()
    AsyncClient()
    engine = Engine.build([{"id": "s", "filter": "mark OR view IN ('a', 'b')"}])
    engine.subscribe({"id": "t", "filter": "mark OR view IN ('a', 'c')"})
    engine.match_events([{"view": "a"}, {"mark": True}])
    engine.match_events([{"view": str(number)} for number in range(40)])
    for dialect, (left, right, both, data, content_type) in _JOINED.items():
        extra = contents_of([dialect])
        if extra in EXTRAS and lacking(extra):
            continue
        inputs = (Input("u", SOURCE, left, dialect), Input("v", SOURCE, right, dialect))
        views = [View(each.view, each.filter, dialect, 1) for each in inputs]
        joined = View("w", both, dialect, 2, inputs)
        source = Evaluation(Assignment(network="n", site=SOURCE, epoch=1, views=tuple(views)), {})
        taking = Evaluation(Assignment(network="n", site="s", epoch=1, views=(joined,)), {})
        if data is not None:
            for result in source.compute(1, Event("e", data, content_type=content_type), ["u", "v"], 0):
                taking.take(SOURCE, result)


def _keep_together(library: ctypes.CDLL) -> None:
    """Have the C library put what is allocated from now on into one heap, and large parts apart."""
    if hasattr(library, "mallopt"):
        for option, value in _MALLOC.items():
            library.mallopt(option, value)


def _fill_holes(library: ctypes.CDLL) -> None:
    """Use up what is free here and there, in all small sizes: Python's memory, then the library's."""
    for size in range(48, 513, 16):
        _FILLED.extend(bytes(size - sys.getsizeof(b"")) for _ in range(_HOLES // size))
    _FILLED.extend(float(each) for each in range(_HOLES // 32))
    _FILLED.extend(object() for _ in range(_HOLES // 16))
    for size in (*(1 << power for power in range(14, 8, -1)), *range(512, 0, -16)):
        for _ in range(max(20, _HOLES // size)):
            library.malloc(size)
    give_back()


def main() -> None:
    """Fork a server for each line of settings."""
    library = ctypes.CDLL(None)
    _keep_together(library)
    _load()
    if WARM in sys.argv:
        from headgate.network.warming import warm_up

        warm_up()
    gc.collect()
    _fill_holes(library)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        reading, writing = os.pipe()
        if not os.fork():
            os.close(reading)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                _serve(json.loads(line), writing)
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answers:
            print(answers.readline().strip() or '{"error": "the server ended"}', flush=True)


if __name__ == "__main__":
    main()
