"""Whole SPARQL 1.1: queries that say more than a pattern; the index narrows, an evaluator decides."""

from headgate.core.machine import need

need("rdf")
