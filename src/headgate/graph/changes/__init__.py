"""A graph that changes while it is asked."""
