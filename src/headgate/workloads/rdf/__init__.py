"""Workloads of RDF."""
