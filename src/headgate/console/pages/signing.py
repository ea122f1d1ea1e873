"""Signing in by key, signing out, and undoing."""

from __future__ import annotations

from starlette.responses import Response

from headgate.console.session import COOKIE
from headgate.console.templates import render
from headgate.console.view import HTML, View, local_path, page, place_of
from headgate.errors import HeadgateError
from headgate.service.problems import NotFound, Problem
from headgate.service.storage.audit import noted

_FIRST = place_of("now")


@page("GET", "/console/sign-in", public=True)
async def ask_key(view: View) -> Response:
    """Ask for a key, where keys are needed."""
    goal = local_path(view.query.get("next"), _FIRST)
    if not len(view.server.keys):
        return view.went(goal)
    return _form(goal)


def _form(goal: str, refused: str = "", status: int = 200) -> Response:
    return Response(render("sign_in.html.j2", next=goal, refused=refused), status, media_type=HTML)


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
        return _form(goal, str(error), error.status)
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
    name = view.form.get("what", "")
    restoring = view.session.restoring(name)
    back = local_path(view.referrer, _FIRST)
    if restoring is None:
        raise NotFound("this cannot be undone any more: it was long ago, or was undone already")
    for done, (operation, path, body, *more) in enumerate(restoring.requests):
        query, headers = (*more, None, None)[:2]
        try:
            await view.ask(operation, path, query, body, headers)
        except HeadgateError as error:
            view.session.has_restored(name, restoring, done)
            part = f", and {done} of {len(restoring.requests)} parts of it are" if done else ""
            view.tell(f"{restoring.what} is not back{part}: {error}", good=False, undo=name)
            return view.went(back)
    return view.went(back, f"{restoring.what} is back")
