"""Ranking of filters of any content: what the engine uses."""
