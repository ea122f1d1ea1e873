"""Spark sessions, their progress and metrics."""
