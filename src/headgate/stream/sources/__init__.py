"""Where events come from, and brokers that take matches or give changes."""
