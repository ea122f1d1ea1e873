"""The picture and the page of a graph."""
