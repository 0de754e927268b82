"""Showing sources, runs and nets: as text, plots and pages."""
