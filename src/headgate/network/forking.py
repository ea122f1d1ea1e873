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
    from headgate import AsyncClient, Engine
    from headgate.network import extension, site  # noqa: F401
    from headgate.service.running import load

    load()
    AsyncClient()
    Engine.build([{"id": "s", "filter": "a = 1"}]).match_events([{"a": 1}])


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
