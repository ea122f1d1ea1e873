"""Filters of several kinds of content in one place: an event's content type says which of them are asked."""
