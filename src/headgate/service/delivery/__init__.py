"""Delivery: who gets what and in which order, how far each consumer came, and the ways to reach it."""
