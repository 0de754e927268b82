"""Showing sources, runs and nets: as text, and as a page on which a run can be watched.

`record` runs a net beside its source, `page` makes one HTML file of the recording.
"""
