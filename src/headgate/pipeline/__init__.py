"""One file for a whole pipeline: what is read, compiled, matched and reported; it goes on after a stop."""
