"""What the service keeps on disk, for one tenant: one SQLite file, and snapshots of the index beside it."""
