"""The console as part of a server: its routes, its sessions, and the history that charts begin with."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from headgate.console import view
from headgate.console.pages import (  # noqa: F401 -- they are the pages
    consumers,
    events,
    graph,
    network,
    now,
    settings,
    signing,
    subscriptions,
    what_if,
)
from headgate.console.pages.network import Pictures
from headgate.console.pages.now import Histories
from headgate.console.session import COOKIE, Sessions
from headgate.console.survey import Surveys
from headgate.console.templates import PREFIX, answer_asset, render
from headgate.console.trial import Trials
from headgate.errors import HeadgateError
from headgate.service.api.app import read_body
from headgate.service.problems import Forbidden, Problem, problem_of
from headgate.service.security.keys import EVERYBODY, check_local
from headgate.service.server import Extension

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from headgate.console.session import Session
    from headgate.console.tour import Tour
    from headgate.network.assignment import Neighbour
    from headgate.service.security.keys import Key
    from headgate.service.server import Server

_FORM = 1 << 20
"""Bytes that a form may have."""
SIGN_IN = "/console/sign-in"


class Console(Extension):
    """Pages for people, in a server."""

    server: Server

    def __init__(self, sites: Mapping[str, Neighbour] | None = None, tour: Tour | None = None) -> None:
        self.sessions = Sessions()
        self.histories = Histories()
        self.trials = Trials()
        self.surveys = Surveys()
        self.pictures = Pictures(sites or {})
        """Those of the network whose sites are shown."""
        self._tour = tour
        self._sampling: asyncio.Task[None] | None = None

    def routes(self, server: Server) -> list[BaseRoute]:
        """List the console's routes."""
        self.server = server
        return [
            Route("/", _home, methods=["GET"]),
            Route("/console", _home, methods=["GET"]),
            Route("/console/", _home, methods=["GET"]),
            Route(f"{PREFIX}/{{digest}}/{{name}}", _asset, methods=["GET"]),
            *(Route(each.path, self._endpoint(each), methods=[each.method]) for each in view.PAGES),
            Route("/console/{rest:path}", self._nothing, methods=["GET"]),
        ]

    async def start(self, server: Server) -> None:
        """Begin to note how much comes, and the tour."""
        self._sampling = asyncio.get_running_loop().create_task(self.histories.sample(server))
        if self._tour is not None:
            await self._tour.start(server, self.pictures)

    async def close(self) -> None:
        """End all that runs."""
        await self.trials.close()
        await self.surveys.close()
        self.pictures.close()
        if self._tour is not None:
            await self._tour.close()
        if self._sampling is not None:
            self._sampling.cancel()

    def end_listeners(self) -> None:
        """Have pages that listen be told that the service stops."""
        self.histories.close()

    # Requests

    def _endpoint(self, asked: view.Page) -> Any:
        async def endpoint(request: Request) -> Response:
            try:
                response = await self._answer(asked, request)
            except HeadgateError as error:
                response = await self._refusal(request, error)
            except ClientDisconnect:
                response = Response(status_code=499)
            return _guarded(response)

        return endpoint

    async def _answer(self, asked: view.Page, request: Request) -> Response:
        server = self.server
        if not len(server.keys):
            check_local(request, server.settings.host)
        changing = request.method not in view.SAFE
        if changing:
            view.check_origin(request)
        cookie = request.cookies.get(COOKIE)
        session, key = self._who(cookie)
        fresh = None
        if key is None and not asked.public:
            return _sign_in(request)
        if key is None:
            # Nothing is kept of who is not signed in: anybody could fill the memory.
            session, _ = self.sessions.passing()
        elif session is None:
            session, fresh = self.sessions.begin(None)
        elif cookie is not None and not changing:
            fresh = self.sessions.rotate(cookie)
        form = view.read_form(await read_body(request, server, _FORM)) if changing else {}
        # A form of somebody who is not signed in is that of the key, which says all by itself.
        if changing and not asked.public and not session.has_token(form.get("token", "")):
            raise Forbidden("the form is not one of this session: load the page again")
        who = key or EVERYBODY
        tenant: Any = await server.tenant(who.tenant) if key is not None else None
        response = await asked.handler(view.View(self, request, session, who, tenant, form))
        if fresh is not None and not any(name == b"set-cookie" for name, _ in response.raw_headers):
            self.give_cookie(response, fresh)
        return response

    def _who(self, cookie: str | None) -> tuple[Session | None, Key | None]:
        """Return the session, and the key that it has now; without keys everybody has one."""
        session, keys = self.sessions.find(cookie), self.server.keys
        if not len(keys):
            return session, EVERYBODY
        if session is None or session.key is None:
            return session, None
        key = keys.get(session.key)
        if key is None:
            self.sessions.end(cookie)
            return None, None
        return session, key

    def lets_go_on(self, session: Session, key: Key) -> bool:
        """Tell whether who listens may go on: signed in still, or still without keys."""
        keys = self.server.keys
        if not key.id:
            return not len(keys)
        return self.sessions.is_open(session) and keys.get(key.id) is not None

    def give_cookie(self, response: Response, cookie: str) -> None:
        """Have the browser keep a session's cookie, or forget it if it is empty."""
        response.set_cookie(
            COOKIE,
            cookie,
            max_age=None if cookie else 0,
            path="/console",
            httponly=True,
            samesite="lax",
            secure=self.server.settings.certificate is not None,
        )

    async def _refusal(self, request: Request, error: HeadgateError) -> Response:
        problem = problem_of(error)
        session, key = self._who(request.cookies.get(COOKIE))
        values: dict[str, Any] = {"error": problem, "signed_in": key is not None, "address": request.url.path}
        if request.headers.get("hx-request") == "true":
            # Parts of a page say what is wrong in their place.
            return Response(render("refusal_part.html.j2", **values), 200, problem.headers, view.HTML)
        tenant = None if key is None else self.server.tenants.get(key.tenant)
        # Who may not see a page sees no menu and no token either.
        if session is None or key is None or tenant is None or problem.status in {401, 403}:
            return Response(render("refusal.html.j2", **values), problem.status, problem.headers, view.HTML)
        asked = view.View(self, request, session, key, tenant)
        back = view.local_path(asked.referrer, view.place_of("now"))
        response = asked.shown("refused.html.j2", error=problem, back=back)
        response.headers.update(problem.headers)
        return response

    async def failed(self, request: Request, problem: Problem) -> Response | None:
        """Tell who looked at a page on a page."""
        if not request.url.path.startswith("/console/"):
            return None
        return _guarded(await self._refusal(request, problem))

    async def _nothing(self, request: Request) -> Response:
        error = Problem(f"the console has no page {request.url.path}", 404)
        return _guarded(await self._refusal(request, error))


def _sign_in(request: Request) -> Response:
    # As it was sent: an id may have letters that stand in no header, and signs that mean something there.
    path = request.scope.get("raw_path", b"").decode("latin-1").partition("?")[0]
    path += f"?{request.url.query}" if request.url.query else ""
    target = f"{SIGN_IN}?next={quote(path, safe='/')}"
    if request.headers.get("hx-request") == "true":
        return Response(status_code=204, headers={"HX-Redirect": SIGN_IN})
    return RedirectResponse(target, 303)


async def _home(request: Request) -> Response:
    del request
    return RedirectResponse("/console/now", 307, {"Cache-Control": "no-store"})


async def _asset(request: Request) -> Response:
    try:
        response = answer_asset(request.path_params["name"], request.headers.get("accept-encoding", ""))
    except HeadgateError as error:
        response = Response(str(error), 404, media_type="text/plain")
    return _guarded(response)


def _guarded(response: Response) -> Response:
    """Say what browsers may do with it, unless it says so itself."""
    for name, value in view.HEADERS.items():
        response.headers.setdefault(name, value)
    return response
