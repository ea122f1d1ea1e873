"""The log of events that a service keeps, as a source of streams and of DataFrames."""
