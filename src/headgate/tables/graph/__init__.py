"""The tables of a graph: rows of nodes, edges and subscriptions, put together."""
