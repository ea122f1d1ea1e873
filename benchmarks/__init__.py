"""Benchmarks: `python -m benchmarks AREA [--size quick|full] [--json FILE] [--markdown FILE]`."""
