"""How events travel: subscribers that feed each other, within capacities."""
