"""NATS JetStream as a source and a sink of streams on Spark."""
