"""NATS JetStream: connections, reading, publishing.

The client library is imported inside functions only, so that Headgate works without it; it comes with
`headgate[nats]`.
"""
