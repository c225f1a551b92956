"""Network architectures by name.

A second architecture for a game is one file with a factory, and one call of ``register_architecture``. Settings choose it by
name (``network.architecture``); a game for which nothing is registered gets the multilayer perceptron.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from experiments.networks.base import SIZES, Model, Size
from experiments.networks.mlp import ResidualMLP
from experiments.networks.polyomino import PolyominoResNet
from experiments.networks.polyomino_mlp import PerceptronPolicy, PolyominoMLP
from experiments.networks.santorini import SantoriniReachNet, SantoriniResNet
from experiments.networks.triominos import TriominosMessagePassing
from search.exported import network_interface, observation_spec
from tilewe_jax.game import Game
from tilewe_jax.games.polyomino.game import PolyominoGame
from tilewe_jax.games.santorini.game import SantoriniGame
from tilewe_jax.games.triominos.game import TriominosGame
from tilewe_jax.words import did_you_mean

Architecture = Callable[[Any, Size, PRNGKeyArray], Model]
"""Makes a network with random weights from a game, a size and a key."""

DEFAULT = "default"
"""Names the architecture that is the game's own."""

_ARCHITECTURES: dict[str, dict[type[Any], Architecture]] = {}
_DEFAULTS: dict[type[Any], str] = {}


def register_architecture(name: str, factory: Architecture, game_type: type[Any] = Game, default: bool = False) -> None:
    """Register an architecture for the games of a class.

    Args:
        name: what settings call it; the same name may stand for the architectures of several games.
        factory: called with a game, a ``Size`` and a key.
        game_type: the class of the games that it is for, by default all games.
        default: whether it becomes the architecture that these games have where no name is given.

    Raises ``ValueError`` where the name is taken for these games, or is empty or "default".
    """
    if name in ("", DEFAULT):
        raise ValueError(f"an architecture needs a name of its own, not {name!r}")
    if game_type in _ARCHITECTURES.get(name, {}):
        raise ValueError(f"there is an architecture {name!r} for {game_type.__name__} already")
    _ARCHITECTURES.setdefault(name, {})[game_type] = factory
    if default:
        _DEFAULTS[game_type] = name


def architectures(game: Game[Any]) -> list[str]:
    """Names of the architectures for a game, its default first."""
    names = [name for name, factories in _ARCHITECTURES.items() if any(isinstance(game, kind) for kind in factories)]
    return sorted(names, key=lambda name: (name != _default(game), name))


def make(game: Game[Any], architecture: str, size: str, key: PRNGKeyArray) -> Model:
    """A network for a game, with random weights.

    Args:
        game: the game.
        architecture: a registered name; "default" is the game's own.
        size: one of ``SIZES``.
        key: decides the weights.

    Raises ``ValueError`` for names that do not exist, or where the network's outputs do not have the game's shapes.
    """
    if size not in SIZES:
        raise ValueError(f"network.size must be one of {', '.join(SIZES)}, not {size!r}{did_you_mean(size, SIZES)}")
    name = resolve(game, architecture)
    factories = _ARCHITECTURES[name]
    model = next(factories[kind] for kind in type(game).__mro__ if kind in factories)(game, SIZES[size], key)
    interface = network_interface(game, model)
    outputs = jax.eval_shape(model, observation_spec(interface, game))
    shapes = (interface.num_logits,), (game.num_players,), (game.num_players,)
    given = outputs.logits.shape, outputs.outcome_logits.shape, outputs.score_logits.shape
    if given != shapes:
        raise ValueError(f"the network {name} gives {list(given)}; {game.id} needs {list(shapes)}")
    return model


def resolve(game: Game[Any], architecture: str) -> str:
    """The registered name of an architecture, "default" resolved. Raises ``ValueError`` where the game has no such one."""
    name = _default(game) if architecture == DEFAULT else architecture
    if name not in architectures(game):
        known = ", ".join([DEFAULT, *architectures(game)])
        raise ValueError(f"network.architecture for {game.id} must be one of {known}, not {architecture!r}")
    return name


def _default(game: Game[Any]) -> str:
    return next((_DEFAULTS[kind] for kind in type(game).__mro__ if kind in _DEFAULTS), "mlp")


register_architecture("mlp", ResidualMLP, default=True)
register_architecture("resnet", PolyominoResNet, PolyominoGame, default=True)
register_architecture("linear_policy_mlp", PolyominoMLP, PolyominoGame)
register_architecture("placement_policy_mlp", partial(PolyominoMLP, policy=PerceptronPolicy), PolyominoGame)
register_architecture("resnet", SantoriniResNet, SantoriniGame, default=True)
register_architecture("reach_resnet", SantoriniReachNet, SantoriniGame)
register_architecture("message_passing", TriominosMessagePassing, TriominosGame, default=True)
