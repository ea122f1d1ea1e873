"""Filters of the CloudEvents Subscriptions API."""
