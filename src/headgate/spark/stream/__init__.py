"""The stream job."""
