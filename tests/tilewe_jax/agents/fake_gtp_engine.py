"""A GTP engine for tests that plays the lowest legal move and fails on demand.

    python -m tests.tilewe_jax.agents.fake_gtp_engine FAULT [WHEN [GAME [PLACEMENT]]]

WHEN is the number of the failing genmove, from 1; GAME is the initial game, and PLACEMENT an option of Santorini.
"""

import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any, ClassVar

from tilewe_jax.formats.names import GtpGame, gtp_game_of_name
from tilewe_jax.formats.santorini import santorini_game
from tilewe_jax.interop.gtp import GtpSession, LastSearch, SearchedMove


class Lowest:
    name = "lowest"

    def __init__(self, game: GtpGame) -> None:
        self.game = game
        self.start = game.start()

    def choose(self, actions: Sequence[int]) -> int:
        position = self.start
        for action in actions:
            position = position.after(action)
        self.num_actions, self.action = len(actions), position.legal_actions()[0]
        return self.action

    parameters: ClassVar[dict[str, str]] = {}

    def last_search(self) -> LastSearch:
        """Value every position by its number of actions: -0.5, 0, 0.5, 1, 1.5, ..."""
        moves = SearchedMove(self.action, 3, self.num_actions / 2 - 0.5), SearchedMove(self.action, 2, 0.3)
        return LastSearch(0.0, moves)

    def new_game(self, deal: Any = None) -> None:
        self.start = self.game.start() if deal is None else self.game.host.init_from_deal(deal)

    def set_time(self, seconds: float | None) -> None: ...

    def set_seed(self, seed: int) -> None: ...


ANSWERS = {
    "cheats": "= a1,a2,a3,a4,a5",
    "babbles": "= I do not know",
    "passes": "= pass",
    "resigns": "= resign",
    "refuses": "? no idea",
    "no_gtp": "Traceback",
    "floods": "= " + "x" * (5 << 20),
}
"""Answers of faulty engines to genmove."""


def main(fault: str = "none", when: str = "1", name: str = "Blokus Duo", placement: str = "default") -> None:
    moves = 0
    if fault == "slow_start":
        time.sleep(0.5)
    game = santorini_game(placement=placement) if name == "santorini" else gtp_game_of_name(name)
    session = GtpSession(game, Lowest, "1")
    for line in sys.stdin:
        started = time.process_time()
        answer = session.answer(line)
        if fault == "refuses_game" and line.startswith("set_game"):
            answer = "? invalid argument\n\n"
        if fault == "refuses_values" and line.startswith("move_values"):
            answer = "? no idea\n\n"
        moves += line.startswith("genmove")
        if line.startswith("genmove") and moves == int(when):
            if fault == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if fault == "exits":
                sys.exit(3)
            while fault == "busy" and time.process_time() - started < 0.3:
                pass
            if fault == "hangs":
                time.sleep(60)
            answer = f"{ANSWERS[fault]}\n\n" if fault in ANSWERS else answer
        sys.stdout.write(answer)
        sys.stdout.flush()
        if session.is_over:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
