"""Event patterns of AWS EventBridge."""
