"""Texts: words in them and finding many at once, and CSV as text."""
