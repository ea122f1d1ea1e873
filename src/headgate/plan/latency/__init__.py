"""The plan of low latency."""
