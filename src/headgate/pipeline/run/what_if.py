"""The page of a what-if, from what the job found; for pipelines and for the command."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from headgate.report.runs import what_if_page
from headgate.report.runs.what_if_model import Changed, Costs, WhatIfPage

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.spark.backtest.question import Question
    from headgate.spark.backtest.what_if import WhatIf


def write_what_if(
    done: WhatIf, question: Question, path: Path, *, title: str, command: str, rejected: str | None
) -> None:
    """Draw what changes would do; `rejected` is where refused rows are, if there are any."""
    page = WhatIfPage(
        title=f"What if: {title}",
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
        rejected_path=rejected,
        command=command,
    )
    what_if_page.write(page, path)
