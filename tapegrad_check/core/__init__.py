"""From the graph of a network and a source, by operations alone, to the proof that they agree.

Nothing here knows a target. `places` evaluates maps, `functions` holds the Boolean functions that bits of the
network and of the source are, `solver` and `lrat` prove that two are the same, `extract` goes through the
graph, `steps` says what sources do.
"""
