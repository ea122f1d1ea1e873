"""The text of a filter to the model, and back."""
