"""Jobs over tables, each written once over a runner: this process, or Spark."""
