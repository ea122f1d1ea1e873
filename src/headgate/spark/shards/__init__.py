"""Subscriptions cut into shards."""
