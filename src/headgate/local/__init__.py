"""Jobs over small tables in this process, without Spark: the same answers, tables and messages."""
