"""Conversions between kinds of source: how every source reaches every target."""
