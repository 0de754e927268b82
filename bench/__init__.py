"""Benchmarks: one module for each part, each with `rows()`; `python -m bench` runs them all."""
