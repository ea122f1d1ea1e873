"""Who may see an event: subscribers to whom a path of valid nodes leads."""
