"""What if: a draft of changes, tried over the events that are kept, compared, and then made."""

from __future__ import annotations

import asyncio
import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from headgate.console import draft
from headgate.console.trial import Question, Run
from headgate.console.view import View, page, place_of
from headgate.core.subscription import SQL, dialects
from headgate.errors import HeadgateError
from headgate.report.words import many
from headgate.runtime import operations
from headgate.runtime.rows import SCORE
from headgate.service.api.operation import READ, is_number
from headgate.service.problems import Conflict, Problem
from headgate.service.security.keys import check_scope

if TYPE_CHECKING:
    from starlette.responses import Response

_PAGE = place_of("what-if")
_KEPT = "what-if"
ROWS = "rows"
"""Changes that are pasted as lines of JSON."""
CHANGES = {
    operations.UPSERT: "Add or replace a subscription",
    SCORE: "Change a score",
    operations.UNSUBSCRIBE: "Remove a subscription",
    operations.SET_FILTER: "Change a node's filter",
    operations.ADD_NODE: "Add a node",
    operations.REMOVE_NODE: "Remove a node",
    operations.ADD_EDGE: "Add or replace an edge",
    operations.REMOVE_EDGE: "Remove an edge",
    ROWS: "Paste rows",
}
_FIELDS = {
    operations.UPSERT: ("id", "filter", "dialect", "score", "node", "consumer"),
    SCORE: ("id", "score"),
    operations.UNSUBSCRIBE: ("id",),
    operations.SET_FILTER: ("id", "filter", "dialect"),
    operations.ADD_NODE: ("id", "filter", "dialect", "kind", "cost"),
    operations.REMOVE_NODE: ("id",),
    operations.ADD_EDGE: ("source", "target", "filter", "dialect", "cost"),
    operations.REMOVE_EDGE: ("source", "target"),
}
_EVENTS, _MOST_EVENTS = 10_000, 100_000
_SHOWN = 200
"""Subscriptions of a result that are listed."""


@dataclass
class _State:
    """What a session keeps for this page."""

    rows: list[draft.Row] = field(default_factory=list)
    run: Run | None = None


def _state(view: View) -> _State:
    state: _State = view.session.kept.setdefault(_KEPT, _State())
    return state


@page("GET", "/console/what-if")
async def what_if(view: View) -> Response:
    """Show the draft, what can be changed, and what the last trial found."""
    check_scope(view.key, READ)
    form: dict[str, Any] = {name: value for name, value in view.query.items() if name != "change"}
    change = view.query.get("change", operations.UPSERT)
    if view.query.get("subscription"):
        stored = view.tenant.store.subscriptions.get(view.query["subscription"])
        form["id"] = view.query["subscription"]
        if stored is not None:
            wanted, body = stored.indexed, stored.said
            known = {name: getattr(wanted, name) for name in ("filter", "dialect", "node")} | {
                "score": body.score
            }
            form = {name: value for name, value in known.items() if value is not None} | form
    if view.query.get("node") and change in {operations.SET_FILTER, operations.REMOVE_NODE}:
        node = view.tenant.store.graph.node(view.query["node"])
        form["id"] = view.query["node"]
        if node is not None and node.filter is not None:
            form = {"filter": node.filter, "dialect": node.dialect} | form
    return _shown(view, change, form)


def _shown(
    view: View, change: str, form: dict[str, Any], error: HeadgateError | None = None, refused: Any = ()
) -> Response:
    check_scope(view.key, READ)
    state, bounds = _state(view), view.tenant.store.log.bounds()
    values = _values(view, state)
    return view.shown(
        "what_if.html.j2",
        change=change if change in CHANGES else operations.UPSERT,
        changes=CHANGES,
        fields=_FIELDS.get(change if change in CHANGES else operations.UPSERT, ()),
        form={"dialect": SQL, **form},
        error=error,
        refused=refused,
        draft=[_told(view, row) for row in state.rows],
        lines="\n".join(map(draft.told, state.rows)),
        kept=max(0, bounds.last - bounds.first + 1),
        dialects=dialects(),
        most=_MOST_EVENTS,
        asked=Question((), _EVENTS) if state.run is None else state.run.question,
        **values,
    )


def _values(view: View, state: _State) -> dict[str, Any]:
    run = state.run
    same = run is not None and run.question.rows == tuple(state.rows)
    graph = draft.changes_graph(state.rows)
    allowed = view.key.allows("subscribe") and (not graph or view.key.allows("admin"))
    return {"run": run, "same": same, "allowed": allowed, "graph": graph, "shown_most": _SHOWN}


def _told(view: View, row: draft.Row) -> dict[str, Any]:
    """Say what a row changes: before and after."""
    change, store = draft.read_row(row), view.tenant.store
    identity = operations.subscription_id(change)
    before: str | None = None
    after = str(row.get("filter") or "")
    path = ""
    if identity is not None:
        stored = store.subscriptions.get(str(identity))
        path = "" if stored is None else place_of("subscriptions", identity)
        if stored is not None:
            before = stored.indexed.filter
        if change.op == SCORE:
            before = None if stored is None else f"score {stored.said.score}"
            after = f"score {row.get('score')}"
        elif not isinstance(change, operations.Put):
            after = "" if change.op == operations.UNSUBSCRIBE else draft.told(row)
        elif row.get("score"):
            after += f" · score {row['score']}"
    elif isinstance(change, operations.SetFilter):
        node = store.graph.node(str(change.id))
        before = "" if node is None else node.filter or "no filter"
        after = change.filter or "no filter"
        path = place_of("graph", "nodes", change.id)
    elif isinstance(change, operations.AddNode | operations.AddEdge):
        after = after or "no filter"
    about = row.get("id") or f"{row.get('source')} → {row.get('target')}"
    return {"op": draft.op_of(row), "about": about, "before": before, "after": after, "place": path}


# The draft


@page("POST", "/console/what-if/add")
async def add(view: View) -> Response:
    """Add to the draft: what a form says, or lines that were pasted."""
    check_scope(view.key, READ)
    change = view.form.get("change", operations.UPSERT)
    try:
        rows = _pasted(view.form.get(ROWS, "")) if change == ROWS else [_row(view, change)]
        if not rows:
            raise Problem("there are no rows: paste one line of JSON for each change", 422)
        state = _state(view)
        if len(state.rows) + len(rows) > draft.MOST:
            raise Problem(
                f"a draft has at most {draft.MOST:,} rows: use headgate backtest --changes for more", 422
            )
        good, refused = await _judged(view, rows)
        if refused and not good:
            raise Problem(refused[0][1] if len(refused) == 1 else f"all {len(refused)} rows are refused", 422)
    except HeadgateError as error:
        return _shown(view, change, dict(view.form), error)
    state.rows += good
    if refused:
        return _shown(view, ROWS, {ROWS: "\n".join(draft.told(row) for row, _ in refused)}, refused=refused)
    return view.went(_PAGE, f"{many(len(good), 'change is', 'changes are')} in the draft")


def _row(view: View, change: str) -> draft.Row:
    if change not in _FIELDS:
        raise Problem(f"change is {change!r}: use one of {', '.join(CHANGES)}", 422)
    row: draft.Row = {operations.OP: change}
    for name in _FIELDS[change]:
        text = view.form.get(name, "")
        text = text if name == "filter" else text.strip()
        if text.strip() and not (name == "dialect" and not view.form.get("filter", "").strip()):
            row[name] = text
    return row


def _pasted(text: str) -> list[draft.Row]:
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            rows.append(msgspec.json.decode(line, type=dict[str, Any]))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise Problem(f"line {number} is no JSON object: {error}", 422) from None
    return rows


async def _judged(view: View, rows: list[draft.Row]) -> tuple[list[draft.Row], list[tuple[draft.Row, str]]]:
    """Tell rows that can be from those that cannot, and why."""
    good: list[draft.Row] = []
    refused: list[tuple[draft.Row, str]] = []
    for row in rows:
        try:
            change, text = draft.read_row(row), row.get("filter")
            if text and isinstance(
                change, operations.Put | operations.AddNode | operations.AddEdge | operations.SetFilter
            ):
                asked = {"filter": text, "dialect": row.get("dialect") or SQL}
                answer = await view.ask("validate_filters", body={"filters": [asked], "events": 0})
                if not answer.filters[0].valid:
                    raise Problem(str(answer.filters[0].error), 422)
            good.append(row)
        except HeadgateError as error:
            refused.append((row, str(error)))
    whole = [*_state(view).rows, *good]
    planned = await _planned(view, draft.ids_of(whole), whole)
    late = {id(each.row): each.reason for each in planned.refused}
    refused += [(row, late[id(row)]) for row in good if id(row) in late]
    return [row for row in good if id(row) not in late], refused


async def _planned(view: View, ids: list[str], rows: list[draft.Row]) -> draft.Planned:
    """Try rows on what there is; the whole graph is read for it."""
    tenant, tried = view.tenant, list(rows)
    return await asyncio.to_thread(lambda: draft.plan(tenant.contents(ids), tried))


@page("POST", "/console/what-if/remove")
async def remove(view: View) -> Response:
    """Take a row out of the draft, or all."""
    state, which = _state(view), view.form.get("row", "")
    if which == "all":
        state.rows, state.run = [], None
        return view.went(_PAGE, "the draft is empty")
    if not is_number(which) or int(which) >= len(state.rows):
        raise Problem(f"row {which!r} is not in the draft any more: load the page again", 404)
    del state.rows[int(which)]
    return view.went(_PAGE, "the change is out of the draft")


# Trying it


@page("POST", "/console/what-if/run")
async def run(view: View) -> Response:
    """Try the draft over events that are kept."""
    check_scope(view.key, READ)
    state = _state(view)
    try:
        if not state.rows:
            raise Problem("the draft is empty: add a change first", 422)
        if state.run is not None and not state.run.ended:
            raise Conflict("a trial runs already: wait until it ends, or cancel it")
        best = _whole(view, "best", 1_000)
        events = _whole(view, "events", _MOST_EVENTS) or _EVENTS
        fresh = Run(view.tenant, Question(tuple(state.rows), events, _since(view), best))
        view.console.trials.start(fresh)
    except HeadgateError as error:
        return _shown(view, operations.UPSERT, dict(view.form), error)
    state.run = fresh
    return view.went(_PAGE + "#result")


def _whole(view: View, name: str, most: int) -> int | None:
    text = view.form.get(name, "").strip()
    if not text:
        return None
    if not (is_number(text) and 1 <= int(text) <= most):
        raise Problem(f"{name} is {text!r}: give a whole number from 1 to {most:,}, or leave it empty", 422)
    return int(text)


def _since(view: View) -> float | None:
    text = view.form.get("since", "").strip()
    if not text:
        return None
    try:
        when = dt.datetime.fromisoformat(text)
    except ValueError:
        raise Problem(f"since is {text!r}: give a time like 2030-01-01T00:00:00Z", 422) from None
    return (when if when.tzinfo else when.replace(tzinfo=dt.UTC)).timestamp()


@page("GET", "/console/what-if/progress")
async def progress(view: View) -> Response:
    """Say how far the trial is, or what it found."""
    check_scope(view.key, READ)
    return view.part("what_if_result.html.j2", **_values(view, _state(view)))


@page("POST", "/console/what-if/cancel")
async def cancel(view: View) -> Response:
    """Have the trial end."""
    state = _state(view)
    if state.run is not None:
        state.run.cancel()
    return view.went(_PAGE, "the trial is cancelled")


# Making it so


@page("POST", "/console/what-if/apply")
async def apply(view: View) -> Response:
    """Make the changes that were tried, one request of the API after the other."""
    state = _state(view)
    tried = state.run
    try:
        if tried is None or tried.result is None or tried.question.rows != tuple(state.rows):
            raise Conflict("the draft was not tried as it is now: run it first")
        result = tried.result
        planned = await _planned(view, list(result.planned.ops), state.rows)
        if planned.refused:
            raise Conflict(f"what the draft changes is not as it was: {planned.refused[0].reason}")
    except HeadgateError as error:
        return _shown(view, operations.UPSERT, {}, error)
    asks = await asyncio.to_thread(draft.requests_of, planned, view.tenant.store, result.revisions)
    made = await draft.make(view, asks)
    changes, undo = many(made.done, "change"), None
    if made.back:
        undo = view.session.can_restore(f"the state before {changes}", *(each[:5] for each in made.back))
    outcome = f"{changes} made"
    if made.refused:
        outcome += f", and {len(made.refused)} refused: {'; '.join(made.refused[:5])}"
    else:
        state.rows, state.run = [], None
    view.tell(outcome, good=not made.refused, undo=undo)
    return view.went(_PAGE)
