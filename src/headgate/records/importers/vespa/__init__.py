"""Predicates of Vespa, as predicate fields of documents hold them."""
