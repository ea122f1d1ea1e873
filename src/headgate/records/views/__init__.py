"""Filters as views: which can be computed from which."""
