"""Networks as drawings: what is drawn, where it goes on a wide and on a narrow screen, what lights up when."""
