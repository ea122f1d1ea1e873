"""What if: a draft of changes, tried over the events that are kept, compared, and then made."""

from __future__ import annotations

import asyncio
import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from headgate.console.applying import make, requests_of
from headgate.console.draft import (
    MOST,
    Planned,
    Row,
    changes_graph,
    ids_of,
    op_of,
    plan,
    read_row,
    told,
)
from headgate.console.trial import Question, Run
from headgate.console.view import View, page, place_of
from headgate.core.subscription import SQL, dialects
from headgate.errors import HeadgateError
from headgate.runtime.operations import (
    ADD_EDGE,
    ADD_NODE,
    OP,
    REMOVE_EDGE,
    REMOVE_NODE,
    SET_FILTER,
    UNSUBSCRIBE,
    UPSERT,
    AddEdge,
    AddNode,
    Put,
    SetFilter,
    subscription_id,
)
from headgate.runtime.rows import SCORE
from headgate.service.api.operation import READ, is_number
from headgate.service.problems import Conflict, Problem, problem_of
from headgate.service.security.keys import check_scope

if TYPE_CHECKING:
    from starlette.responses import Response

_PAGE = place_of("what-if")
_KEPT = "what-if"
ROWS = "rows"
"""Changes that are pasted as lines of JSON."""
CHANGES = {
    UPSERT: "Add or replace a subscription",
    SCORE: "Change a score",
    UNSUBSCRIBE: "Remove a subscription",
    SET_FILTER: "Change a node's filter",
    ADD_NODE: "Add a node",
    REMOVE_NODE: "Remove a node",
    ADD_EDGE: "Add or replace an edge",
    REMOVE_EDGE: "Remove an edge",
    ROWS: "Paste rows",
}
_FIELDS = {
    UPSERT: ("id", "filter", "dialect", "score", "node", "consumer"),
    SCORE: ("id", "score"),
    UNSUBSCRIBE: ("id",),
    SET_FILTER: ("id", "filter", "dialect"),
    ADD_NODE: ("id", "filter", "dialect", "kind", "cost"),
    REMOVE_NODE: ("id",),
    ADD_EDGE: ("source", "target", "filter", "dialect", "cost"),
    REMOVE_EDGE: ("source", "target"),
}
_EVENTS, _MOST_EVENTS = 10_000, 100_000
_SHOWN = 200
"""Subscriptions of a result that are listed."""


@dataclass
class _State:
    """What a session keeps for this page."""

    rows: list[Row] = field(default_factory=list)
    run: Run | None = None


def _state(view: View) -> _State:
    found: _State = view.session.kept.setdefault(_KEPT, _State())
    return found


@page("GET", "/console/what-if")
async def what_if(view: View) -> Response:
    """Show the draft, what can be changed, and what the last trial found."""
    check_scope(view.key, READ)
    form: dict[str, Any] = {name: value for name, value in view.query.items() if name != "change"}
    change = view.query.get("change", UPSERT)
    if view.query.get("subscription"):
        found = view.tenant.store.subscriptions.get(view.query["subscription"])
        form["id"] = view.query["subscription"]
        if found is not None:
            wanted, said = found.indexed, found.said
            known = {
                "filter": wanted.filter,
                "dialect": wanted.dialect,
                "node": wanted.node,
                "score": said.score,
            }
            form = {name: value for name, value in known.items() if value is not None} | form
    if view.query.get("node") and change in {SET_FILTER, REMOVE_NODE}:
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
        status=200 if error is None else problem_of(error).status,
        change=change if change in CHANGES else UPSERT,
        changes=CHANGES,
        fields=_FIELDS.get(change if change in CHANGES else UPSERT, ()),
        form={"dialect": SQL, **form},
        error=error,
        refused=refused,
        draft=[_told(view, row) for row in state.rows],
        lines="\n".join(map(told, state.rows)),
        kept=max(0, bounds.last - bounds.first + 1),
        dialects=dialects(),
        most=_MOST_EVENTS,
        asked=Question((), _EVENTS) if state.run is None else state.run.question,
        **values,
    )


def _values(view: View, state: _State) -> dict[str, Any]:
    run = state.run
    same = run is not None and run.question.rows == tuple(state.rows)
    graph = changes_graph(state.rows)
    allowed = view.key.allows("subscribe") and (not graph or view.key.allows("admin"))
    return {"run": run, "same": same, "allowed": allowed, "graph": graph, "shown_most": _SHOWN}


def _told(view: View, row: Row) -> dict[str, Any]:
    """Say what a row changes: before and after."""
    change, store = read_row(row), view.tenant.store
    identity = subscription_id(change)
    before: str | None = None
    after = str(row.get("filter") or "")
    place = ""
    if identity is not None:
        stored = store.subscriptions.get(str(identity))
        place = "" if stored is None else place_of("subscriptions", identity)
        if stored is not None:
            before = stored.indexed.filter
        if change.op == SCORE:
            before = None if stored is None else f"score {stored.said.score}"
            after = f"score {row.get('score')}"
        elif not isinstance(change, Put):
            after = "" if change.op == UNSUBSCRIBE else told(row)
        elif row.get("score"):
            after += f" · score {row['score']}"
    elif isinstance(change, SetFilter):
        node = store.graph.node(str(change.id))
        before = "" if node is None else node.filter or "no filter"
        after = change.filter or "no filter"
        place = place_of("graph", "nodes", change.id)
    elif isinstance(change, AddNode | AddEdge):
        after = after or "no filter"
    about = row.get("id") or f"{row.get('source')} → {row.get('target')}"
    return {"op": op_of(row), "about": about, "before": before, "after": after, "place": place}


# The draft


@page("POST", "/console/what-if/add")
async def add(view: View) -> Response:
    """Add to the draft: what a form says, or lines that were pasted."""
    check_scope(view.key, READ)
    change = view.form.get("change", UPSERT)
    try:
        rows = _pasted(view.form.get(ROWS, "")) if change == ROWS else [_row(view, change)]
        if not rows:
            raise Problem("there are no rows: paste one line of JSON for each change", 422)
        state = _state(view)
        if len(state.rows) + len(rows) > MOST:
            raise Problem(f"a draft has at most {MOST:,} rows: use headgate backtest --changes for more", 422)
        good, refused = await _judged(view, rows)
        if refused and not good:
            raise Problem(refused[0][1] if len(refused) == 1 else f"all {len(refused)} rows are refused", 422)
    except HeadgateError as error:
        return _shown(view, change, dict(view.form), error)
    state.rows += good
    if refused:
        return _shown(view, ROWS, {ROWS: "\n".join(told(row) for row, _ in refused)}, refused=refused)
    return view.went(_PAGE, f"{len(good)} {'change is' if len(good) == 1 else 'changes are'} in the draft")


def _row(view: View, change: str) -> Row:
    if change not in _FIELDS:
        raise Problem(f"change is {change!r}: use one of {', '.join(CHANGES)}", 422)
    row: Row = {OP: change}
    for name in _FIELDS[change]:
        given = view.form.get(name, "")
        given = given if name == "filter" else given.strip()
        if given.strip() and not (name == "dialect" and not view.form.get("filter", "").strip()):
            row[name] = given
    return row


def _pasted(text: str) -> list[Row]:
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            rows.append(msgspec.json.decode(line, type=dict[str, Any]))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise Problem(f"line {number} is no JSON object: {error}", 422) from None
    return rows


async def _judged(view: View, rows: list[Row]) -> tuple[list[Row], list[tuple[Row, str]]]:
    """Tell rows that can be from those that cannot, and why."""
    good: list[Row] = []
    refused: list[tuple[Row, str]] = []
    for row in rows:
        try:
            change, text = read_row(row), row.get("filter")
            if text and isinstance(change, Put | AddNode | AddEdge | SetFilter):
                asked = {"filter": text, "dialect": row.get("dialect") or SQL}
                answer = await view.ask("validate_filters", body={"filters": [asked], "events": 0})
                if not answer.filters[0].valid:
                    raise Problem(str(answer.filters[0].error), 422)
            good.append(row)
        except HeadgateError as error:
            refused.append((row, str(error)))
    whole = [*_state(view).rows, *good]
    planned = await _planned(view, ids_of(whole), whole)
    late = {id(each.row): each.reason for each in planned.refused}
    refused += [(row, late[id(row)]) for row in good if id(row) in late]
    return [row for row in good if id(row) not in late], refused


async def _planned(view: View, ids: list[str], rows: list[Row]) -> Planned:
    """Try rows on what there is; the whole graph is read for it."""
    tenant, tried = view.tenant, list(rows)
    return await asyncio.to_thread(lambda: plan(tenant.contents(ids), tried))


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
        return _shown(view, UPSERT, dict(view.form), error)
    state.run = fresh
    return view.went(_PAGE + "#result")


def _whole(view: View, name: str, most: int) -> int | None:
    given = view.form.get(name, "").strip()
    if not given:
        return None
    if not (is_number(given) and 1 <= int(given) <= most):
        raise Problem(f"{name} is {given!r}: give a whole number from 1 to {most:,}, or leave it empty", 422)
    return int(given)


def _since(view: View) -> float | None:
    given = view.form.get("since", "").strip()
    if not given:
        return None
    try:
        when = dt.datetime.fromisoformat(given)
    except ValueError:
        raise Problem(f"since is {given!r}: give a time like 2030-01-01T00:00:00Z", 422) from None
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
        return _shown(view, UPSERT, {}, error)
    asks = await asyncio.to_thread(requests_of, planned, view.tenant.store, result.revisions)
    made = await make(view, asks)
    before, undo = f"the state before {_count(made.done)}", None
    if made.back:
        undo = view.session.can_restore(before, *(each[:5] for each in made.back))
    if made.refused:
        said = f"{_count(made.done)} made, and {len(made.refused)} refused: {'; '.join(made.refused[:5])}"
        view.tell(said, good=False, undo=undo)
        return view.went(_PAGE)
    state.rows, state.run = [], None
    return view.went(_PAGE, f"{_count(made.done)} made", undo=undo)


def _count(number: int) -> str:
    return f"{number} {'change' if number == 1 else 'changes'}"
