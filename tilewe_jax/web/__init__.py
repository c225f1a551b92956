"""The game server: games against people and engines, studies and training runs in a browser; see README.md in this folder.

Requires the extra ``[web]``. The server process never imports JAX: engines run in separate processes (``engines``).
"""
