"""Queries of Elasticsearch, as percolators hold them."""
