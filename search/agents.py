"""Players by name: the ready-made ones of a game, and searches, like ``mcts:sims=64,playouts=4``."""

from dataclasses import dataclass, fields
from typing import Any

from jaxtyping import PRNGKeyArray

from search.determinize import Worlds, is_hidden
from search.evaluators import Evaluator, playouts, uniform
from search.gumbel import Gumbel
from search.mcts import Search, Selection
from search.select import Puct
from tilewe_jax.game import Action, Game, Policy


@dataclass(frozen=True)
class _Settings:
    sims: int = 64
    """Simulations of a search."""
    playouts: int = 1
    """Random games from each leaf; 0 takes all positions for equal."""
    candidates: int = 64
    """Actions that a node keeps."""
    depth: int = 32
    worlds: int = 4
    """Searches a decision, each of another world, in games with hidden information."""


@dataclass(frozen=True)
class _Mcts(_Settings):
    exploration: float = 1.25
    reduction: float = 0.1
    temperature: float = 0.0

    def selection(self) -> Selection:
        return Puct(exploration=self.exploration, reduction=self.reduction, temperature=self.temperature)


@dataclass(frozen=True)
class _Gumbel(_Settings):
    considered: int = 16
    scale: float = 1.0
    value_scale: float = 0.1

    def selection(self) -> Selection:
        return Gumbel(self.sims, self.considered, self.scale, self.value_scale)


_KINDS: dict[str, type[_Mcts] | type[_Gumbel]] = {"mcts": _Mcts, "gumbel": _Gumbel}


def agent(game: Game[Any], text: str) -> Policy:
    """The player that a text stands for: one of ``game.policies()``; or ``mcts`` or ``gumbel``, with settings after a colon.

    In games with hidden information a search sees sampled worlds only. Raises ``ValueError`` where there is no such player, or
    no such setting, and says what there is.
    """
    kind, _, rest = text.partition(":")
    if kind not in _KINDS:
        policies = game.policies()
        if text not in policies:
            raise ValueError(f"{game.id} has no player {text!r}; it has {', '.join([*policies, *searches()])}")
        return policies[text]
    settings = _parse(kind, rest)
    evaluate: Evaluator = playouts(game, settings.playouts) if settings.playouts else uniform(game)
    search = Search(game, evaluate, settings.selection(), settings.sims, settings.candidates, settings.depth)
    if is_hidden(game):
        worlds = Worlds(search, settings.worlds)

        def guess(state: Any, key: PRNGKeyArray) -> Action:
            return worlds(state, key)[0]

        return guess

    def play(state: Any, key: PRNGKeyArray) -> Action:
        return search(state, key).action

    return play


def is_search(text: str) -> bool:
    """Whether a text stands for a search."""
    return text.partition(":")[0] in _KINDS


def simulations(game: Game[Any], text: str) -> int:
    """Simulations a decision; 0 for players that do not search."""
    kind, _, rest = text.partition(":")
    if kind not in _KINDS:
        return 0
    settings = _parse(kind, rest)
    return settings.sims * (settings.worlds if is_hidden(game) else 1)


def searches() -> list[str]:
    """The searches, with all their settings and what these are unless given."""
    return [f"{kind}:{_defaults(kind)}" for kind in _KINDS]


def _defaults(kind: str) -> str:
    return ",".join(f"{field.name}={field.default}" for field in fields(_KINDS[kind]))


def _parse(kind: str, rest: str) -> _Mcts | _Gumbel:
    known = {field.name: field.type for field in fields(_KINDS[kind])}
    given: dict[str, Any] = {}
    for item in rest.split(",") if rest else []:
        name, equals, value = item.partition("=")
        if name not in known or not equals:
            raise ValueError(f"{kind} has no setting {item!r}; it has {_defaults(kind)}")
        try:
            given[name] = known[name](value)  # type: ignore[operator]
        except ValueError:
            raise ValueError(f"{kind}: {name} must be a number, not {value!r}") from None
    return _KINDS[kind](**given)
