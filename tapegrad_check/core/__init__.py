"""From the graph of a network and a source, by operations alone, to the proof that they agree.

Nothing here knows a target. `places` evaluates maps, `nodes` has Boolean functions and shares what is built
alike, `functions` merges what is the same: the bits of the network and of the source. `solver` and `lrat`
prove that two are the same, `extract` goes through the graph.
"""
