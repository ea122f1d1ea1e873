"""Signing in by key, signing out, and undoing."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.responses import Response

from headgate.console.guard import local_path
from headgate.console.session import COOKIE
from headgate.console.templates import render
from headgate.console.view import HTML, View, page, place_of
from headgate.errors import HeadgateError
from headgate.service.problems import NotFound, Problem, problem_of
from headgate.service.storage.audit import noted

_FIRST = place_of("now")


@page("GET", "/console/sign-in", public=True)
async def ask_key(view: View) -> Response:
    """Ask for a key, where keys are needed."""
    goal = local_path(view.query.get("next"), _FIRST)
    if not len(view.server.keys):
        return view.went(goal)
    return _form(view, goal)


def _form(view: View, goal: str, refused: str = "", status: int = 200) -> Response:
    data = view.server.settings.data
    return Response(render("sign_in.html.j2", next=goal, refused=refused, data=data), status, media_type=HTML)


@page("POST", "/console/sign-in", public=True)
async def sign_in(view: View) -> Response:
    """Open a session for a key; one that was there ends."""
    console, goal = view.console, local_path(view.form.get("next"), _FIRST)
    address = view.request.client.host if view.request.client is not None else ""
    try:
        console.sessions.check_patience(address)
        text = view.form.get("key", "").strip()
        if not text and len(view.server.keys):
            raise Problem("there is no key: write it here, it begins with hg_", 401)
        key = view.server.keys.find(text)
    except Problem as error:
        if error.status == 401:
            console.sessions.note_failure(address)
        return _form(view, goal, str(error), error.status)
    if not key.id:
        return view.went(goal)
    console.sessions.end(view.request.cookies.get(COOKIE))
    _, cookie = console.sessions.begin(key)
    tenant = await view.server.tenant(key.tenant)
    await tenant.write(noted(key.id, "sign in", address))
    response = Response(status_code=303, headers={"Location": goal})
    console.give_cookie(response, cookie)
    return response


@page("POST", "/console/sign-out")
async def sign_out(view: View) -> Response:
    """Close the session."""
    view.console.sessions.end(view.request.cookies.get(COOKIE))
    response = Response(status_code=303, headers={"Location": place_of("sign-in")})
    view.console.give_cookie(response, "")
    return response


@page("POST", "/console/undo")
async def undo(view: View) -> Response:
    """Bring back what was deleted."""
    found = view.session.restoring(view.form.get("what", ""))
    back = local_path(_referrer(view), _FIRST)
    if found is None:
        raise NotFound("this cannot be undone any more: it was long ago, or was undone already")
    try:
        for operation, path, body, *query in found.requests:
            await view.ask(operation, path, query[0] if query else None, body)
    except HeadgateError as error:
        raise Problem(f"{found.what} could not be brought back: {error}", problem_of(error).status) from None
    return view.went(back, f"{found.what} is back")


def _referrer(view: View) -> str | None:
    found = urlsplit(view.request.headers.get("referer", ""))
    return found.path + (f"?{found.query}" if found.query else "")
