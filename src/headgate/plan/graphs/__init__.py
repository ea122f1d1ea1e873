"""Which views embed in which, and which can be computed from which."""
