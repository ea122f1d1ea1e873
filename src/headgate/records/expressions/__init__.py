"""Expressions over attributes, as Spark SQL computes them: text to tree, typed by values, evaluated."""
