"""What patterns return for a document."""
