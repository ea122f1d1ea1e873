"""What workers do with DataFrames of events: Arrow batches in, Arrow batches out."""
