"""Boolean expressions over attributes: who matches a record."""
