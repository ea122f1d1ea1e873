"""Documents: bytes to arrays."""
