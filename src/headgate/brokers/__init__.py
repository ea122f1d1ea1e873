"""Message brokers, without Spark."""
