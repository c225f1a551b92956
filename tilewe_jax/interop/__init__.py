"""What other programs speak and read, and the games in other packages.

Plain Python, without JAX: the Go Text Protocol (GTP), Pentobi's game files, and analyses in JSON lines.

With JAX, and each with the package that it is for (see ``docs/interop.md``): ``pettingzoo``, ``gymnasium``,
``stable_baselines3``, ``pgx``, ``open_spiel``, ``alpha_zero_general``, ``mctx``, ``torch``. Modules have the names of packages;
inside of them these are found as ever, since imports are absolute.
"""
