"""Ways to evaluate networks: one file each, one method for each operation."""
