"""Filters that came since the index was built."""
