"""The scored interval indexes of the paper on ranking."""
