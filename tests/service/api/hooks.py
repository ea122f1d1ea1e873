"""What schemathesis is told: how texts that are no JSON are sent."""

from __future__ import annotations

import json
from typing import Any

import schemathesis


@schemathesis.serializer("application/x-ndjson", "text/turtle")
def as_text(_: Any, value: Any) -> bytes:
    """Send text as it is, and what is none as a line of JSON."""
    return value.encode("utf-8", "replace") if isinstance(value, str) else json.dumps(value).encode()
