"""What every room needs: events, values, schema, interning, snapshots and the JIT."""

__version__ = "0.1.0"
"""The version of Headgate, which snapshots carry."""
