"""Programs on the tapes of a Turing machine: the table of an instruction set, followed for all programs."""
