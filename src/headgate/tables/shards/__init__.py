"""Subscriptions and graphs cut into shards: rows to their shards, and what leads to each."""
