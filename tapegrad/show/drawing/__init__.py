"""Networks as drawings: what there is, where it goes on a wide and on a narrow screen, what lights up."""
