"""Why a filter holds for an event or not, and what was nearest."""
