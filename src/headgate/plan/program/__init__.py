"""The plan of least utilization: the integer program."""
