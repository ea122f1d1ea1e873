"""Tables of nodes and edges to flat arrays."""
