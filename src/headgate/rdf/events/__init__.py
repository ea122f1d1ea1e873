"""Events: documents to numbered graphs."""
