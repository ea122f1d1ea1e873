"""Ranking of boxes of intervals."""
