"""The run: step after step, with what is told of it."""
