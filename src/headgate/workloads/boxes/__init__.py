"""Workloads of boxes and intervals."""
