"""Algorithms of the papers that no product path takes: for comparison."""
