"""Streams of events to matches, whoever says which rows are a batch."""
