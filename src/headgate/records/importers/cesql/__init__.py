"""CloudEvents SQL, version 1.0."""
