"""Others' libraries talk to the service: cloudevents as a client, schemathesis as one that means no good."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.docs.fences import ROOT
from tests.service.api.serving import serving

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST = 1_800
"""Seconds; a whole run takes 200 where nothing else does."""
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def test_the_cloudevents_library(tmp_path: Path) -> None:
    from cloudevents.core.bindings.http import to_binary_event, to_structured_event
    from cloudevents.core.v1.event import CloudEvent

    attributes = {
        "specversion": "1.0",
        "id": "é 1",
        "source": "/shop",
        "type": "made",
        "datacontenttype": "application/json",
    }
    event = CloudEvent(attributes, {"price": 5})
    with serving(tmp_path / "data") as api:
        assert api("PUT", "/v1/subscriptions/s", {"filter": "price = 5 AND type = 'made'"}).status == 201
        for message in (to_structured_event(event), to_binary_event(event)):
            got = api("POST", "/v1/events", message.body, **message.headers)
            assert (got.status, got.json["matched"], got.json["events"][0]["id"]) == (200, 1, "é 1")
        one = to_structured_event(event).body
        batch = b"[" + one + b"," + one + b"]"
        got = api("POST", "/v1/events", batch, Content_Type="application/cloudevents-batch+json")
        assert (got.status, got.json["matched"]) == (200, 2)


def _schemathesis(place: Path, *more: str) -> None:
    with serving(place) as api:
        key = api("POST", "/v1/keys", {"scopes": ["admin"]}).json["text"]
        address = f"http://127.0.0.1:{api.port}/v1/openapi.json"
        command = [sys.executable, "-m", "schemathesis.cli", "run", address, "--checks", CHECKS, "--no-color"]
        done = subprocess.run(
            [*command, "-H", f"Authorization: Bearer {key}", *more],
            capture_output=True,
            text=True,
            check=False,
            cwd=place,
            timeout=_LONGEST,
            env={**os.environ, "SCHEMATHESIS_HOOKS": "tests.service.api.hooks", "PYTHONPATH": str(ROOT)},
        )
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]


@pytest.mark.nightly
def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    _schemathesis(tmp_path / "data", "--max-examples", "100", "--seed", "1")


def test_schemathesis_finds_nothing_at_first_sight(tmp_path: Path) -> None:
    _schemathesis(tmp_path / "data", "--phases", "examples,fuzzing", "--max-examples", "2", "--seed", "1")
