"""Protocols of other programs, and adapters to other packages.

The Go Text Protocol (GTP) and analyses in JSON lines are plain Python without JAX. Each adapter needs JAX and the package of
the same name, see ``docs/interop.md``.
"""
