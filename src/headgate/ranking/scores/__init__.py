"""Scores that depend on the event: expressions over its attributes, many at a time."""
