"""Versions of a snapshot: which one counts, how a new one is put in place, and object stores."""
