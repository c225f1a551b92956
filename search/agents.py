"""Players by name: the ready-made ones of a game, and searches, like ``mcts:sims=64,playouts=4``."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from search import tree
from search.candidates import POOL
from search.determinization import Worlds, is_hidden
from search.evaluators import Evaluator, heuristic, network, playouts, uniform
from search.exported import Network, as_tree, load
from search.gumbel import Gumbel
from search.ismcts import OneTree
from search.mcts import Decision, Search, Selection
from search.puct import Puct
from tilewe_jax.game import Action, Game, Policy


@dataclass(frozen=True)
class _Settings:
    sims: int = 64
    """Simulations of a search."""
    playouts: int = 1
    """Games played from each leaf; 0 takes what the game estimates of it."""
    samples: int = 16
    """In those games each move is the best of so many random ones, by what they look worth."""
    policy: str = ""
    """A player of the game that plays those games instead."""
    plies: int = 0
    """Cuts those games off after so many actions; 0 does not."""
    priors: int = 1
    """Whether actions have priors, by what they look worth; 0 takes all for equal."""
    margin: float = 0.3
    """How much it counts by how much a game is won, between 0 and 1; with a network by default what that was trained for."""
    candidates: int = 64
    """Actions that a node keeps."""
    pool: int = 128
    """Actions among which it finds them; with a network by default 1,024."""
    depth: int = 32
    worlds: int = 4
    """Searches a decision, each of another world, in games with hidden information; 0 is one search, each simulation of
    another world."""
    network: str = ""
    """A file that ``networks.save`` has written, or module:factory; it says what leaves and actions are worth, in place of the
    playouts."""
    symmetries: int = 0
    """Whether the network is asked about all symmetries of a position."""

    def evaluator(self, game: Game[Any]) -> Evaluator:
        """What looks at leaves, without a network."""
        if not self.playouts:
            return heuristic(game) if self.priors else uniform(game)
        policy = agent(game, self.policy) if self.policy else None
        return playouts(
            game,
            self.playouts,
            priors=bool(self.priors),
            policy=policy,
            samples=self.samples,
            plies=self.plies or None,
            margin=self.margin,
        )


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


def agent(game: Game[Any], text: str, load: Callable[[Game[Any], str], Network] = load) -> Policy:
    """The player that a text stands for: one of ``game.policies()``; or ``mcts`` or ``gumbel``, with settings after a colon.

    In games with hidden information a search sees sampled worlds only. ``load`` finds networks by name. A player with a network
    is a ``jax.tree_util.Partial`` with its weights. Raises ``ValueError`` where there is no such player, or no such setting,
    and says what there is.
    """
    kind, _, rest = text.partition(":")
    if kind not in _KINDS:
        policies = game.policies()
        if text not in policies:
            raise ValueError(f"{game.id} has no player {text!r}; it has {', '.join([*policies, *searches()])}")
        return policies[text]
    settings = _parse(kind, rest)
    if not settings.network:
        if settings.symmetries:
            raise ValueError(f"{kind}: symmetries are asked of a network; name one")
        return _searcher(game, settings, settings.evaluator(game))
    found = load(game, settings.network)
    settings = _parse(kind, rest, margin=getattr(found, "margin", 0.0), pool=POOL)
    _searcher(game, settings, network(game, found, bool(settings.symmetries)))  # for errors, before it is compiled

    def decide(found: Network, state: Any, key: PRNGKeyArray) -> Action:
        return _searcher(game, settings, network(game, found, bool(settings.symmetries)))(state, key)

    return jax.tree_util.Partial(decide, as_tree(found))


def _searcher(game: Game[Any], settings: _Mcts | _Gumbel, evaluate: Evaluator) -> Policy:
    """The search as a player."""
    selection = settings.selection()
    sizes = settings.sims, settings.candidates, settings.depth
    if is_hidden(game) and not settings.worlds:
        if not isinstance(selection, Puct):
            raise ValueError("gumbel: worlds must be at least 1; one tree for all worlds is searched by mcts alone")
        decide: Callable[..., Decision] = OneTree(game, evaluate, selection, *sizes, settings.pool, settings.margin)
    else:
        search = Search(game, evaluate, selection, *sizes, pool=settings.pool, stop_early=True, margin=settings.margin)
        decide = Worlds(search, settings.worlds) if is_hidden(game) else search
    return lambda state, key: decide(state, key).action


def is_search(text: str) -> bool:
    """Whether a text stands for a search."""
    return text.partition(":")[0] in _KINDS


def simulations(game: Game[Any], text: str) -> int:
    """Simulations a decision, at most; 0 for players that do not search."""
    kind, _, rest = text.partition(":")
    if kind not in _KINDS:
        return 0
    settings = _parse(kind, rest)
    return settings.sims * _trees(game, settings)


def check_memory(game: Game[Any], text: str, batch: int) -> None:
    """Raise ``MemoryError`` where a player's searches of so many games do not fit into memory; see ``tree.check_memory``."""
    kind, _, rest = text.partition(":")
    if kind in _KINDS:
        settings = _parse(kind, rest)
        tree.check_memory(game, settings.sims + 1, settings.candidates, batch * _trees(game, settings))


def _trees(game: Game[Any], settings: _Mcts | _Gumbel) -> int:
    """Trees that are searched for a decision."""
    return max(1, settings.worlds) if is_hidden(game) else 1


def searches() -> list[str]:
    """The searches, with all their settings and what these are unless given."""
    return [f"{kind}:{_defaults(kind)}" for kind in _KINDS]


def _defaults(kind: str) -> str:
    return ",".join(f"{field.name}={field.default}" for field in fields(_KINDS[kind]))


def _parse(kind: str, rest: str, **defaults: Any) -> _Mcts | _Gumbel:
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
    return _KINDS[kind](**{**defaults, **given})
