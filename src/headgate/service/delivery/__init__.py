"""Delivery: who gets what, in which order, how far each consumer came, and the ways by which events reach them."""
