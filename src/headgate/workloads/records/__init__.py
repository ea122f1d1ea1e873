"""Workloads of records."""
