"""Attention programs: named bits, heads and gates, between machines with memories and layers."""
