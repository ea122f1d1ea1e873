"""Filters of other systems, converted to filters of records or refused with the reason."""
