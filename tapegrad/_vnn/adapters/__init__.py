"""What runs in the Python of a verifier, where tapegrad need not be."""
