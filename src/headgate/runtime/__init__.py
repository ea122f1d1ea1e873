"""What jobs and streams ask, without Spark: engines over shards, their versions, the log of changes."""
