"""Why a pattern holds for an event or not."""
