"""The match job."""
