"""The best k of those that an event reaches."""
