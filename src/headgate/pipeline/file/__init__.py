"""The pipeline file: its settings, read and checked."""
