"""The facades of the library: they join the rooms."""
