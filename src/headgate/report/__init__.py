"""The report of a run: one self-contained HTML page with the numbers, four pictures and the tables."""
