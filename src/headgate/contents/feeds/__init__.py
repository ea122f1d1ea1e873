"""Feeds, RSS of all versions and Atom: where their channel and their items are, whatever kind reads them."""
