"""The backtest and what-if jobs."""
