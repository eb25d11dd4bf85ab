"""What the program talks about: frozen values without I/O, from the standard library alone."""
