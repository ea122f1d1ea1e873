"""The page of a what-if."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.report import what_if_page
from headgate.report.what_if_model import Changed, Costs, WhatIfPage

if TYPE_CHECKING:
    from headgate.pipeline.plan import Step
    from headgate.spark.what_if import Question, WhatIf


def write_what_if(done: WhatIf, question: Question, step: Step, command: str) -> None:
    """Draw what changes would do."""
    refused = done.rejected or done.rejected_events
    page = WhatIfPage(
        title=f"What if: {step.of}",
        created=dt.datetime.now(dt.UTC),
        events=done.events,
        rejected_events=done.rejected_events,
        changes=tuple(done.changes.items()),
        rejected=done.rejected,
        gained=done.gained,
        lost=done.lost,
        subscriptions=tuple(Changed(**{**vars(each), "id": str(each.id)}) for each in done.effects),
        noise=question.noise,
        deliveries_a_day=done.deliveries_a_day,
        costs=Costs(*done.cost) if done.cost else None,
        top=question.top.k if question.top else None,
        rejected_path=step.outputs["rejected"] if refused else None,
        command=command,
    )
    what_if_page.write(page, Path(step.outputs["page"]))
