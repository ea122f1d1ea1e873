"""Filters and sets of changes tried over events of the past: what does not ask who runs it, Spark or we."""
