"""What those who run the service ask: its metrics."""

from __future__ import annotations

import asyncio

from headgate.service.api.operation import READ, Answer, Call, operation
from headgate.service.metrics import MEDIA_TYPE, written


@operation(
    "GET",
    "/v1/metrics",
    "Read what is counted, as Prometheus reads it.",
    READ,
    {200: bytes},
    answer_media=MEDIA_TYPE,
)
async def metrics(call: Call) -> Answer:
    """Read what is counted."""
    text = await asyncio.to_thread(written, call.server, call.tenant)
    return Answer(text, media_type=MEDIA_TYPE)
