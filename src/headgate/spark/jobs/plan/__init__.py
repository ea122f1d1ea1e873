"""The plan job."""
