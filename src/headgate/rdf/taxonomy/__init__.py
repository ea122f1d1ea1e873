"""Classes, properties and instances, and what lies above them."""
