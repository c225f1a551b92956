"""Server with the fake engine, as a process for the page tests.

python -m tests.tilewe_jax.web.page_server PORT FILE [RUNS]
"""

import socket
import sys
from pathlib import Path

import uvicorn

from tests.tilewe_jax.web.support import AGENTS, GENEROUS, engine
from tilewe_jax.web.app import create_app
from tilewe_jax.web.sockets import server_config
from tilewe_jax.web.store import Store

if __name__ == "__main__":
    port, data, *runs = sys.argv[1:]
    app = create_app(Store(Path(data)), engine(), AGENTS, limits=GENEROUS, runs=Path(runs[0]) if runs else None)
    uvicorn.Server(server_config(app, GENEROUS)).run(sockets=[socket.create_server(("127.0.0.1", int(port)))])
