"""A data set of RASP programs with their networks and answer keys, of any size."""
