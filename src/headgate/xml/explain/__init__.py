"""Why a pattern holds for a document or not."""
