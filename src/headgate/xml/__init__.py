"""Tree patterns over XML documents, and structural ids."""
