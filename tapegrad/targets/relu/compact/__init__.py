"""The compact form of target `relu`: from a circuit to gates of up to four inputs, and to their units."""
