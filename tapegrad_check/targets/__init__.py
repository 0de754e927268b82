"""The checkers of the targets, each in the file of its name, and what they are made of."""
