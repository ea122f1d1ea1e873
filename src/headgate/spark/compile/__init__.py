"""The compile job."""
