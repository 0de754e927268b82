"""How far a run is followed to be shown, unless more is asked for."""

MOST_STEPS = 2_000
"""Steps of the net."""

SECONDS = 60.0
"""Time for one run of the studio."""
