"""Who comes first: the best k matches, by score or by what holds."""
