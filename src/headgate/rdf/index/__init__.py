"""Patterns as flat arrays, and matching by them."""
