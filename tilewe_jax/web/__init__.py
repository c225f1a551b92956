"""The game server: games against people and engines, studies and training runs, in a browser; see README.md in this folder.

Needs the extra ``[web]``. The process of the server never imports JAX: engines are processes of their own (``engines``).
"""
