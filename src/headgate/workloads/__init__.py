"""Seeded workloads: tables that look real, are the same on every machine, and grow to any size.

Every value is a hash of (seed, table, column, row), so a row never depends on the batch, the
partition or the machine that made it.
"""
