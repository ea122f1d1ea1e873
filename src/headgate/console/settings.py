"""The settings of `headgate serve`: those of the service, and what its console shows besides."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.core.settings import Input, Output, setting
from headgate.service.settings import ServiceSettings


@dataclass(frozen=True)
class ServeSettings(ServiceSettings):
    """What `headgate serve` is told."""

    data: Output = setting(
        "the directory that everything is kept in; it is made if it is not there",
        "",
        metavar="DIRECTORY",
        shown="a temporary one with `--demo`, which is removed at the end; else it is required",
    )
    network: Input | None = setting(
        "a file of sites, as `headgate network deploy` takes it: the console shows how these fare",
        metavar="FILE",
    )
    demo: bool = setting(
        "begin with an advertising workload that publishes by itself, to see the console alive; webhooks may "
        "go to this machine then",
        False,
    )
    demo_rate: float = setting(
        "events a second that the demo publishes", 20.0, least=0.1, most=5_000, needs="demo"
    )
