"""What other programs speak and read: the Go Text Protocol (GTP), Pentobi's game files, and analyses in JSON lines.

Plain Python, without JAX.
"""
