"""Jobs, each written once over a runner."""
