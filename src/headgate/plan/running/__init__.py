"""A plan made, carried out and changed."""
