"""Events to the codes of an index."""
