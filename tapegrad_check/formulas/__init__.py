"""Boolean functions: shared nodes, words of them, decision diagrams, and the proof that two are the same."""
