"""Agents of ``tilewe-jax play`` in a separate process, so that players can type, undo and leave while an agent thinks.

The process reads JSON lines. The first line names the game. Each further line is a question: an agent, and the actions since
the start, or ``null`` to compile only. The process answers with an action or an error, and reports compilation before.
"""

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from random import SystemRandom
from typing import Any

from tilewe_jax.cli.common import FailedError
from tilewe_jax.utils import processes


class Engine:
    """Process of the agents, which starts with the first question.

    Args:
        game: the game as in ``--game``.
        options: options of the game.
        deal: outcome of chance at the start.
        imports: modules to import first.
        trust: whether files may name code, see ``tilewe_jax.utils.trust``.
    """

    def __init__(self, game: str, options: dict[str, Any], deal: Any, imports: Sequence[str] = (), trust: bool = False) -> None:
        seed = SystemRandom().getrandbits(32)
        self._setup = {
            "game": game, "options": options, "deal": deal, "seed": seed, "imports": list(imports), "trust": trust
        }  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process

    def ask(self, agent: str, actions: Sequence[int] | None) -> None:
        """Ask for the action of an agent after these actions; ``None`` only compiles. Raises ``FailedError``."""
        if self._process is None:
            command = [sys.executable, "-m", "tilewe_jax.cli.terminal.engine"]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                # In a new session, Ctrl-C in the terminal reaches only the command.
                command, bufsize=0, stdin=pipe, stdout=pipe, stderr=self._errors, start_new_session=True,
            )  # fmt: skip
            self._write(self._setup)
        self._write({"agent": agent, "actions": None if actions is None else list(actions)})

    def receive(self) -> dict[str, Any]:
        """Wait for the next answer. Raises ``FailedError`` if the process has ended."""
        assert self._process
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            self._fail()
        row: dict[str, Any] = json.loads(line)
        return row

    def has_answer(self) -> bool:
        """Return whether ``receive`` gives an answer without waiting."""
        return self.output is not None and bool(select.select([self.output], [], [], 0)[0])

    @property
    def output(self) -> int | None:
        """File descriptor of the answers; ``None`` before the first question."""
        return self._process.stdout.fileno() if self._process and self._process.stdout else None

    def close(self) -> None:
        """Kill the process and its descendants."""
        if self._process:
            processes.kill(self._process.pid)
            self._process.wait()
        self._errors.close()

    def _write(self, row: dict[str, Any]) -> None:
        assert self._process
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(row).encode() + b"\n")
        except BrokenPipeError:
            self._fail()

    def _fail(self) -> None:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "it wrote no error")
        raise FailedError(f"the process of the engine has ended: {last}")


def main() -> None:
    """Answer questions until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries must not mix with the answers

    def answer(**values: Any) -> None:
        answers.write(json.dumps(values) + "\n")
        answers.flush()

    from tilewe_jax.agents import agent as make_agent
    from tilewe_jax.agents.host_agent import HostAgent
    from tilewe_jax.interop.gtp import GtpError
    from tilewe_jax.registry import make_game
    from tilewe_jax.utils.factories import import_module

    setup = json.loads(sys.stdin.readline())
    for name in setup["imports"]:
        import_module(name)
    game = make_game(setup["game"], setup["options"])
    agents: dict[str, HostAgent] = {}
    for line in sys.stdin:
        question = json.loads(line)
        text, actions = question["agent"], question["actions"]
        try:
            if text not in agents:
                answer(agent=text, state="compiling")
                agents[text] = make_agent(text, game, trust=setup["trust"]).host(setup["seed"], setup["deal"])
            action = None if actions is None else agents[text].choose(actions)
            answer(agent=text, state="ready", actions=actions, action=action)
        except (GtpError, ValueError, MemoryError) as error:
            answer(agent=text, state="failed", error=f"{text}: {error}")


if __name__ == "__main__":
    main()
