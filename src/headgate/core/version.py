"""The version of Headgate, which snapshots carry."""

__version__ = "0.1.0"
