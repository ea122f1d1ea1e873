"""Tables in files, without Spark: where they lie, what is asked of them, and their rows."""
