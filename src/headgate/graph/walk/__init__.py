"""Which subscriptions an event reaches."""
