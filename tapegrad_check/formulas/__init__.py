"""Words of Boolean functions, and decision diagrams."""
