"""What other programs speak and read: the Go Text Protocol (GTP) and Pentobi's game files. Plain Python, without JAX."""
