"""Tables and documents in and out, judged row by row."""
