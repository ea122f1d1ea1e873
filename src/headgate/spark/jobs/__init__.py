"""The jobs of the command line: tables in, tables and snapshots out."""
