"""Words in texts: what one is, and finding many of them at once."""
