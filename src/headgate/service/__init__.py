"""The service: publish, subscribe and deliver over HTTP, everything durable before it is acknowledged."""
