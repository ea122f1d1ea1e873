"""DataFrames in, DataFrames out: on any session, batch or streaming."""
