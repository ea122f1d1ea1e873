"""Feeds, RSS of all versions and Atom: where their channel and their items are, whatever kind reads them."""

from headgate.core.machine import need

need("xml")
