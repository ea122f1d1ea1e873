"""The data pipeline on Spark: sessions, progress, steps and jobs."""
