"""A network in memory: sites with logs, links that deliver in any order of sites, and sites that are killed.

It does with lists what sites do with processes, files and connections; what a view computes is the site's own
code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headgate.network.assignment import SOURCE, Kind, Neighbour, assignments, begins_of, forgotten, taken
from headgate.network.entry import Mark, Result
from headgate.network.evaluation import Evaluation

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from headgate import Dissemination, Event
    from headgate.core.event import Id
    from headgate.network.assignment import Assignment
    from tests.network.worlds import World

NOWHERE = Neighbour("http://127.0.0.1:1")


class MemorySite:
    """A site. What is in `log` and `reached` survives a kill."""

    def __init__(self, network: MemoryNetwork, name: str) -> None:
        self.network = network
        self.name = name
        self.log: list[Result | Mark] = []
        self.reached: dict[Id, int] = {}
        self.assignment: Assignment | None = None
        self.evaluation: Evaluation | None = None
        self.cursors: dict[str, int] = {}
        self.told: dict[Id, int] = {}
        """How far the log says that views have come."""
        self.alive = True

    def assign(self, assignment: Assignment) -> None:
        """Hold other views."""
        assignment.check()
        self.assignment = assignment
        held = {view.id for view in assignment.views}
        self.reached = {view: at for view, at in self.reached.items() if view in held}
        self.begin()

    def begin(self) -> None:
        """Begin with what survives."""
        assert self.assignment is not None
        self.evaluation = Evaluation(self.assignment, self.reached, most_kept=self.network.most_kept)
        self.cursors = {}
        self.told = {}
        self.replay()

    def replay(self) -> None:
        """Give views what they take from this site itself."""
        evaluation = self.evaluation
        assert evaluation is not None
        begun = evaluation.reached
        for entry in list(self.log):
            if isinstance(entry, Result) and entry.document <= begun.get(entry.view, 0):
                self.keep(evaluation.take(self.name, entry))
        evaluation.come(self.name, {view: begun[view] for view in evaluation.wanted(self.name)})

    def locate(self, wanted: Mapping[Id, int]) -> int:
        """Find where the log has all documents after the given ones."""
        assert self.assignment is not None
        begins = {view.id: view.after for view in self.assignment.views}
        assert all(begins[view] <= document for view, document in wanted.items())
        first = min(wanted.values())
        for view in wanted:
            self.told.pop(view, None)
        late = [n for n, each in enumerate(self.log) if isinstance(each, Result) and each.document > first]
        return min(late, default=len(self.log))

    def step(self, upstream: str, most: int) -> bool:
        """Take some entries of another site; tells whether there were any."""
        evaluation, other = self.evaluation, self.network.sites[upstream]
        assert evaluation is not None
        if upstream not in self.cursors:
            self.cursors[upstream] = other.locate(evaluation.wanted(upstream))
        begin = self.cursors[upstream]
        some = other.log[begin : begin + most]
        wanted = evaluation.wanted(upstream)
        for entry in some:
            if isinstance(entry, Mark):
                evaluation.come(upstream, entry.upto)
            elif entry.view in wanted:
                self.keep(evaluation.take(upstream, entry))
        self.cursors[upstream] = begin + len(some)
        for name in evaluation.behind():
            if name == self.name:
                self.replay()
            else:
                self.cursors.pop(name, None)
        return bool(some)

    def keep(self, results: list[Result]) -> None:
        """Keep results and how far views have come, together."""
        assert self.evaluation is not None
        if results:
            self.log += results
            self.told |= {each.view: each.document for each in results}
            self.reached = self.evaluation.reached

    def mark(self) -> None:
        """Keep a mark of what results do not tell."""
        assert self.evaluation is not None
        self.reached = self.evaluation.reached
        upto = {view: at for view, at in self.reached.items() if self.told.get(view, -1) < at}
        if upto:
            self.log.append(Mark(upto))
            self.told |= upto


class MemoryNetwork:
    """All sites of a plan."""

    def __init__(self, world: World, plan: Dissemination, rng: random.Random, most_kept: int = 2_000) -> None:
        self.world = world
        self.plan = plan
        self.rng = rng
        self.most_kept = most_kept
        self.epoch = 0
        self.documents: list[Event] = []
        self.begins: dict[tuple[str, Id], int] = {}
        self.sites: dict[str, MemorySite] = {}
        self.own: dict[Id, str] = {}
        """The site of each view."""
        self.deploy()

    def reached(self) -> dict[Id, int]:
        """Say how far views have come at their own sites."""
        return {
            view: at
            for site in self.sites.values()
            if site.alive and site.name != SOURCE and site.evaluation is not None
            for view, at in site.reached.items()
            if self.own[view] == site.name
        }

    def deploy(self) -> None:
        """Tell all sites what the plan says now."""
        self.epoch += 1
        placed = self.plan.placed()
        names = {SOURCE, *(each.site for each in placed)}
        for name in sorted(names - set(self.sites)):
            self.sites[name] = MemorySite(self, name)
        kind = Kind("n", "default", self.world.carries)
        alive = dict.fromkeys((name for name in sorted(names) if self.sites[name].alive), NOWHERE)
        self.own |= {each.id: each.site for each in placed}
        self.begins = forgotten(placed, self.begins) | begins_of(
            placed, self.begins, self.reached(), len(self.documents)
        )
        for name, given in assignments(kind, placed, alive, self.epoch, begins=self.begins).items():
            self.sites[name].assign(given)

    def publish(self, event: Event) -> None:
        """Have the source compute what it feeds."""
        self.documents.append(event)
        self.compute()

    def compute(self) -> None:
        """Compute at the source all that was not yet."""
        source = self.sites[SOURCE]
        assert source.evaluation is not None
        views = list(source.evaluation.targets)
        for number, event in enumerate(self.documents, 1):
            source.keep(source.evaluation.compute(number, event, views, 0))
        source.evaluation.computed_upto(len(self.documents))

    def links(self) -> list[tuple[str, str]]:
        """List who takes from whom."""
        return [
            (site.name, name)
            for site in self.sites.values()
            if site.alive and site.assignment is not None
            for name in sorted(taken(site.assignment.views, site.name))
        ]

    def drain(self) -> None:
        """Deliver all that is to be delivered."""
        self.compute()
        while True:
            links = self.links()
            self.rng.shuffle(links)
            moved = [self.sites[site].step(name, 1_000) for site, name in links]
            if any(moved):
                continue
            before = {name: len(site.log) for name, site in self.sites.items()}
            for site in self.sites.values():
                if site.alive and site.evaluation is not None:
                    site.mark()
            if before == {name: len(site.log) for name, site in self.sites.items()}:
                return

    def results(self) -> dict[Id, list[tuple[int, Any]]]:
        """List for each view what its site has kept, in the order that it has been kept."""
        found: dict[Id, list[tuple[int, Any]]] = {each.id: [] for each in self.world.subscriptions}
        for name, site in self.sites.items():
            if name != SOURCE:
                for entry in site.log:
                    # What is computed for another site stands in the log of both.
                    if isinstance(entry, Result) and self.own[entry.view] == name:
                        found[entry.view].append((entry.document, msgspec.json.decode(entry.text)))
        return found
