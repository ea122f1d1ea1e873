"""Servers and sites, forked from one process that has loaded everything, so that each starts at once.

It reads a line of JSON for each, the settings, and answers with a line: its process and its address, or why
it does not run. They share the memory of what was loaded, and end when their parent does.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from typing import Any

_PATIENCE = 60.0
"""Seconds that one may take to come up."""
SITE = "site"
"""The setting that makes a server a site: the tenant of its results."""

_VIEWS = {
    "sql": "a = 1",
    "sparql": "SELECT * { ?p <urn:a> ?a }",
    "xpath": "//a{id}[b{val}]",
}


def _serve(settings: dict[str, Any], told: int) -> None:
    """Be a server, in a child. One that does not come up tells where it stands, and ends."""
    import ctypes
    import faulthandler

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
    """Load what every server needs; the first match of each kind loads most."""
    from headgate import AsyncClient, Engine, Event, Subscription
    from headgate.core.event import JSON, XML
    from headgate.engine.views import views_of
    from headgate.network import extension, site  # noqa: F401
    from headgate.service.running import load

    load()
    AsyncClient()
    Engine.build([{"id": "s", "filter": "a = 1"}]).match_events([{"a": 1}])
    for dialect, text in _VIEWS.items():
        views = views_of([Subscription(each, text, dialect) for each in ("v1", "v2")])
        views.rewriting(0, [1])
        if dialect != "sparql":
            # RDF is read by a process of its own, which no two may share.
            data = {"a": 1} if dialect == "sql" else "<a><b>1</b></a>"
            event = Event("e", data, content_type=JSON if dialect == "sql" else XML)
            views.unpack(0, views.pack(views.result(0, event)))


def main() -> None:
    """Fork a server for each line of settings."""
    _load()
    gc.collect()
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
