"""OpenRTB bid requests to events: one event for each impression.

Reads bid requests from a file, one JSON object a line, and prints events in the same way:
`python impressions.py requests.jsonl > events.jsonl`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def impressions(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Make one event of each impression.

    Filters do not look into arrays of objects, so these become something plain: `imp` is the one impression,
    sizes are texts, deals are their ids, and the supply chain is the domains that the request has passed.
    """
    # Our `source` is the node where the event enters; OpenRTB has an object of that name.
    rest = {name: value for name, value in request.items() if name not in {"id", "imp", "source"}}
    chain = supply_chain(request.get("source", {}))
    if chain is not None:
        domains = [node["asi"] for node in chain.get("nodes", [])]
        rest["schain"] = {"complete": chain.get("complete"), "asi": domains}
    for imp in request["imp"]:
        identity = f"{request['id']}/{imp['id']}"
        yield {"id": identity, "source": request["site"]["domain"], "imp": plain(imp), **rest}


def supply_chain(source: dict[str, Any]) -> dict[str, Any] | None:
    """Find the supply chain: OpenRTB 2.6 has it in `source`, earlier versions in `source.ext`."""
    found: dict[str, Any] | None = source.get("schain", source.get("ext", {}).get("schain"))
    return found


def plain(imp: dict[str, Any]) -> dict[str, Any]:
    """Replace the arrays of objects in an impression."""
    imp = dict(imp)
    if "banner" in imp:
        banner = dict(imp["banner"])
        sizes = [*banner.pop("format", []), banner]
        banner["sizes"] = [f"{size['w']}x{size['h']}" for size in sizes if "w" in size and "h" in size]
        imp["banner"] = banner
    if "pmp" in imp:
        pmp = dict(imp["pmp"])
        pmp["dealids"] = [deal["id"] for deal in pmp.pop("deals", [])]
        imp["pmp"] = pmp
    return imp


def main() -> None:
    """Turn a file of bid requests into events."""
    with Path(sys.argv[1]).open(encoding="utf-8") as lines:
        for line in lines:
            for event in impressions(json.loads(line)):
                print(json.dumps(event, ensure_ascii=False))


if __name__ == "__main__":
    main()
