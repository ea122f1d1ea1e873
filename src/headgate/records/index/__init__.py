"""Programs to flat arrays, and matching by them."""
