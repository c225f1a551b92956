"""Players in plain Python, which need no JAX: they play on host positions, in a browser too.

``random`` plays a random action; ``heuristic`` the action that the heuristics of the game prefer (``host.Heuristics``); and
``search:simulations=N`` searches a tree of N simulations (PUCT) with the heuristics as priors and values. With hidden
information it searches several determinizations, so that no player sees more than its seat.
"""

import math
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from tilewe_jax.host import Heuristics, HostGame, HostPosition, softmax
from tilewe_jax.host_games import OFFERS

NAMES = ("random", "heuristic", "search")
DETERMINIZATIONS = 8
"""Number of trees of a search with hidden information."""
MAX_CANDIDATES = 48
"""Maximum number of actions that a node considers: the ones with the highest priors."""
C_PUCT = 1.0
"""Weight of the exploration term of PUCT."""
FPU_REDUCTION = 0.1
"""An action without visits has the value of its node minus this."""
_VARIATION_LENGTH = 8

Answer = dict[str, Any]


class _Node:
    """A node of a tree; arrays are in the order of ``actions``, by descending prior."""

    __slots__ = ("actions", "children", "player", "position", "priors", "sums", "total", "value", "visits")

    def __init__(self, game: HostGame, heuristics: Heuristics, position: HostPosition) -> None:
        self.position, self.player = position, position.current_player
        self.actions: list[int] = []
        self.priors: list[float] = []
        if position.is_terminal:
            self.value: Sequence[float] = game.returns(position)
        else:
            self.value = heuristics.value(position)
            actions = position.legal_actions()
            logits = heuristics.logits(position, actions) if len(actions) > 1 else [0.0]
            best = sorted(range(len(actions)), key=logits.__getitem__, reverse=True)[:MAX_CANDIDATES]
            self.actions = [actions[index] for index in best]
            self.priors = softmax([logits[index] for index in best])
        self.children: list[_Node | None] = [None] * len(self.actions)
        self.visits = [0] * len(self.actions)
        self.sums = [[0.0] * len(self.value) for _ in self.actions]
        """Sums of the values of the simulations of each action, by seat."""
        self.total = self.value[self.player]
        """Sum of the values of the node and of its simulations for the player to move."""

    def select(self) -> int:
        """Return the index of the action to simulate."""
        count = 1 + sum(self.visits)
        explore = C_PUCT * math.sqrt(count)
        unvisited = self.total / count - FPU_REDUCTION
        best, best_score, player = 0, -math.inf, self.player
        for index, (prior, visits, sums) in enumerate(zip(self.priors, self.visits, self.sums, strict=True)):
            score = (sums[player] / visits if visits else unvisited) + explore * prior / (1 + visits)
            if score > best_score:
                best, best_score = index, score
        return best


def _simulate(game: HostGame, heuristics: Heuristics, root: _Node) -> Sequence[float]:
    """Add a node to a tree, unless the simulation ends at a terminal node; return the value of the simulation."""
    path, node = [], root
    while node.actions:
        index = node.select()
        path.append((node, index))
        child = node.children[index]
        if child is None:
            node.children[index] = node = _Node(game, heuristics, node.position.after(node.actions[index]))
            break
        node = child
    value = node.value
    for parent, index in path:
        parent.visits[index] += 1
        parent.total += value[parent.player]
        sums = parent.sums[index]
        for seat, share in enumerate(value):
            sums[seat] += share
    return value


def _variation(node: _Node, index: int) -> list[str]:
    """Return the names of the most visited actions from an action of a node on."""
    names: list[str] = []
    child: _Node | None = node
    while child and child.actions and len(names) < _VARIATION_LENGTH:
        if names:
            if not any(child.visits):
                break
            index = max(range(len(child.visits)), key=child.visits.__getitem__)
        names.append(child.position.action_name(child.actions[index]))
        child = child.children[index]
    return names


def simulations_of(agent: str) -> int:
    """Return the number of simulations of an agent, 0 for one that does not search. Raises ``ValueError`` for other texts."""
    kind, _, settings = agent.partition(":")
    name, _, number = settings.partition("=")
    if kind == "search" and name == "simulations" and number.isdecimal() and 1 <= int(number) <= 1 << 20:
        return int(number)
    if kind not in NAMES or kind == "search" or settings:
        raise ValueError(f"agent must be random, heuristic or search:simulations=N, got {agent!r}")
    return 0


def think(
    game: HostGame,
    position: HostPosition,
    agent: str,
    chance: Random,
    *,
    simulations: int | None = None,
    max_candidates: int = 10,
) -> Iterator[Answer | None]:
    """Decide on an action in small steps, so that the caller can do other work meanwhile.

    Args:
      game: the game.
      position: a position that is not terminal.
      agent: text of the player.
      chance: random numbers.
      simulations: overrides the number of simulations of a search.
      max_candidates: maximum number of candidates in the answer.

    Yields ``None`` after each simulation and at last the answer, with the fields of an answer of ``tilewe-jax analyze``.
    Raises ``ValueError`` for an unknown agent.
    """
    number = simulations_of(agent)
    actions = position.legal_actions()
    heuristics = OFFERS[game.id].heuristics if game.id in OFFERS else None
    if agent == "random" or heuristics is None:
        yield _answer(position, chance.choice(actions), [1 / game.num_players] * game.num_players, 0, [])
        return
    number = number if simulations is None else simulations
    if not number:
        logits = heuristics.logits(position, actions)
        priors = softmax(logits)
        ranked = sorted(range(len(actions)), key=logits.__getitem__, reverse=True)
        candidates = [
            _candidate(actions[index], 0, priors[index], None, [position.action_name(actions[index])])
            for index in ranked[:max_candidates]
        ]
        yield _answer(position, actions[ranked[0]], heuristics.value(position), 0, candidates)
        return
    worlds = [position]
    if heuristics.determinize:
        worlds = [heuristics.determinize(position, chance) for _ in range(min(DETERMINIZATIONS, number))]
    roots = [_Node(game, heuristics, world) for world in worlds]
    values = [0.0] * game.num_players
    for simulation in range(number):
        value = _simulate(game, heuristics, roots[simulation % len(roots)])
        values = [total + each for total, each in zip(values, value, strict=True)]
        yield None
    yield _combined(position, roots, [value / number for value in values], number, max_candidates)


def _combined(
    position: HostPosition, roots: Sequence[_Node], value: Sequence[float], number: int, max_candidates: int
) -> Answer:
    """Return the answer of the trees of one decision."""
    visits: dict[int, int] = {}
    for root in roots:
        for action, count in zip(root.actions, root.visits, strict=True):
            visits[action] = visits.get(action, 0) + count
    ranked = sorted(visits, key=visits.__getitem__, reverse=True)  # ties keep the order of the priors
    candidates = []
    for action in [action for action in ranked[:max_candidates] if visits[action]]:
        held = [(root, root.actions.index(action)) for root in roots if action in root.actions]
        sums = [root.sums[index] for root, index in held]
        mean = [sum(by_seat) / visits[action] for by_seat in zip(*sums, strict=True)]
        prior = sum(root.priors[index] for root, index in held) / len(roots)
        variation = _variation(*held[0]) if len(roots) == 1 else [position.action_name(action)]
        candidates.append(_candidate(action, visits[action], prior, mean, variation))
    return _answer(position, ranked[0], value, number, candidates)


def _candidate(action: int, visits: int, prior: float, value: Sequence[float] | None, variation: Sequence[str]) -> Answer:
    return {
        "action": action,
        "visits": visits,
        "prior": prior,
        "value": value,
        "value_error": None,
        "principal_variation": list(variation),
    }


def _answer(position: HostPosition, action: int, value: Sequence[float], number: int, candidates: Sequence[Answer]) -> Answer:
    return {
        "action": action,
        "value": list(value),
        "score_lead": None,
        "num_simulations": number,
        "is_book": False,
        "candidates": list(candidates),
    }
