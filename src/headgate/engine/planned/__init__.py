"""The views of a plan: how they are made, grow, and are computed."""
