"""What every room needs: events, values, schema, interning, snapshots and the JIT."""
