"""Streams of events on Structured Streaming: each match once, whatever dies meanwhile."""
