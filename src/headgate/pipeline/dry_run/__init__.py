"""The dry run."""
