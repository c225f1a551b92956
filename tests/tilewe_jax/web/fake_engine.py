"""Engine for tests, which speaks the protocol of ``tilewe-jax analyze`` and has a fault.

    python -m tests.tilewe_jax.web.fake_engine [FAULT]

FAULT is "dies" (at a question about a position after two moves), "silent" (no answer to such questions), "stuck" (no answer to
any question), "babbles" (lines that are not answers), "cheats" (illegal actions), or "broken" (it does not start).
"""

import json
import os
import random
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tilewe_jax.interop.analysis import Analysis, AnalysisSession, Candidate, Solved, serve_standard_streams
from tilewe_jax.interop.analysis_requests import Defaults, GameSpec, Played, Request


class Fake:
    """Returns five random legal actions, of which the first is better than the others."""

    batch = 16

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.hosts: dict[str, Any] = {}

    def prepare(self, game: GameSpec, settings: Mapping[str, Any]) -> str:
        if settings.get("agent") == "missing":
            raise ValueError("unknown agent 'missing'")
        key = json.dumps([game.host.id, dict(game.options), settings], sort_keys=True)
        self.hosts[key] = game.host
        return key

    def analyze(self, search: Any, positions: Sequence[Played]) -> list[Analysis]:
        return [self._analysis(self.hosts[search], played, len(positions)) for played in positions]

    def solve(self, search: Any, request: Request, max_nodes: int) -> dict[int, Solved]:
        return {}

    def _analysis(self, host: Any, played: Played, batch: int) -> Analysis:
        if self.fault == "stuck":
            time.sleep(600)
        if len(played.actions) == 2:
            if self.fault == "dies":
                os._exit(3)
            if self.fault == "silent":
                time.sleep(600)
            if self.fault == "babbles":
                print("Traceback", '{"id": "x"}', "[]", '{"id": 99999, "error": "?"}', sep="\n", flush=True)
        position = host.init_from_deal(played.deal)
        for action in played.actions:
            position = position.after(action)
        chance = random.Random(played.seed)
        legal = position.legal_actions()
        chosen = chance.sample(legal, min(5, len(legal)))
        count, player = host.num_players, position.current_player
        value = (1 / count,) * count
        best = tuple(share + (0.1 if seat == player else -0.1 / max(1, count - 1)) for seat, share in enumerate(value))
        candidates = tuple(
            Candidate(action, 10 - rank, 0.1, value if rank else best, (action,)) for rank, action in enumerate(chosen)
        )
        return Analysis(chosen[0], candidates, value, None, 0.0, 50, 0.0, batch)


class Cheat(AnalysisSession):
    """Returns an action that is always illegal."""

    def work(self) -> list[dict[str, Any]]:
        return [{**row, "action": 10**6} if "action" in row else row for row in super().work()]


def main(fault: str = "none") -> None:
    if fault == "broken":
        sys.exit("this engine is broken")
    session = (Cheat if fault == "cheats" else AnalysisSession)(Defaults("duo"), Fake(fault), "1")
    serve_standard_streams(session)


if __name__ == "__main__":
    main(*sys.argv[1:])
