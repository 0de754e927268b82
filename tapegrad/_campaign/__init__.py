"""Random programs by the million: each net is compared with the interpreter of its source at every step."""
