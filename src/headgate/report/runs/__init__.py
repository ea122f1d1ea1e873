"""The pages of runs, streams and what-ifs."""
