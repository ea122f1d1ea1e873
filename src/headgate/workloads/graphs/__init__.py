"""Workloads with a graph."""
