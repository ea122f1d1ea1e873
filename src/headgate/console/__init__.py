"""The console: pages that `headgate serve` serves, for people who subscribe, run it, and ask why.

    browser ──► guard: host, origin, session, token ──► view ──► operations of the API ──► template

A page knows nothing that the API does not tell: it asks the same operations, with the same key and scopes.
"""
