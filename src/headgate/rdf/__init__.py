"""Graph patterns over RDF triples, and the taxonomy of their classes."""
