"""Filters to programs over leaves: what indexes are built from."""
