"""The kinds of content: what is asked of them, and which there are."""
