"""Network architectures by name.

A second architecture for a game is one file with a factory, and one call of ``register_architecture``. Settings choose it by
name (``network.architecture``), or name the factory itself, ``module:factory``; a game for which nothing is registered gets the
multilayer perceptron.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from tilewe_jax.game import Game
from tilewe_jax.games.polyomino.game import PolyominoGame
from tilewe_jax.games.santorini.game import SantoriniGame
from tilewe_jax.games.triominos.game import TriominosGame
from tilewe_jax.networks.base import SIZES, Model, Size
from tilewe_jax.networks.mlp import ResidualMLP
from tilewe_jax.networks.polyomino import PolyominoResNet
from tilewe_jax.networks.polyomino_mlp import PerceptronPolicy, PolyominoMLP
from tilewe_jax.networks.santorini import SantoriniReachNet, SantoriniResNet
from tilewe_jax.networks.triominos import TriominosMessagePassing
from tilewe_jax.search.exported import network_interface, observation_spec
from tilewe_jax.utils import factories
from tilewe_jax.utils.words import did_you_mean

Architecture = Callable[[Any, Size, PRNGKeyArray], Model]
"""Makes a network with random weights from a game, a size and a key."""

DEFAULT = "default"
"""Names the architecture that is the game's own."""

_ARCHITECTURES: dict[str, dict[type[Any], Architecture]] = {}
_DEFAULTS: dict[type[Any], str] = {}
_MODULES: dict[str, str] = {}
"""The module or file of the user that registered an architecture, by the architecture's name; empty if it is not known."""


def register_architecture(name: str, factory: Architecture, game_type: type[Any] = Game, default: bool = False) -> None:
    """Register an architecture for the games of a class.

    Args:
        name: what settings call it; the same name may stand for the architectures of several games.
        factory: called with a game, a ``Size`` and a key.
        game_type: the class of the games that it is for, by default all games.
        default: whether it becomes the architecture that these games have where no name is given.

    Raises ``ValueError`` where the name is taken for these games, is empty or "default", or has a colon.
    """
    if name in ("", DEFAULT):
        raise ValueError(f"an architecture needs a name of its own, not {name!r}")
    if ":" in name:
        raise ValueError(f"the name of an architecture must not contain a colon, got {name!r}")
    if _ARCHITECTURES.get(name, {}).get(game_type, factory) is not factory:
        raise ValueError(f"there is an architecture {name!r} for {game_type.__name__} already")
    _ARCHITECTURES.setdefault(name, {})[game_type] = factory
    _MODULES.setdefault(name, factories.being_loaded())
    if default:
        _DEFAULTS[game_type] = name


def architectures(game: Game[Any]) -> list[str]:
    """Names of the architectures for a game, its default first."""
    names = [name for name, kinds in _ARCHITECTURES.items() if any(isinstance(game, kind) for kind in kinds)]
    return sorted(names, key=lambda name: (name != _default(game), name))


def make(game: Game[Any], architecture: str, size: str, key: PRNGKeyArray, registered_by: str = "") -> Model:
    """A network for a game, with random weights.

    Args:
        game: the game.
        architecture: a registered name, where "default" is the game's own, or ``module:factory``.
        size: one of ``SIZES``.
        key: decides the weights.
        registered_by: the module or file that registers the architecture, if known, for the error.

    Raises ``ValueError`` for names that do not exist, for an architecture of a user that raises, and where the network's
    outputs do not have the game's shapes.
    """
    if size not in SIZES:
        raise ValueError(f"network.size must be one of {', '.join(SIZES)}, not {size!r}{did_you_mean(size, SIZES)}")
    name = resolve(game, architecture, registered_by)
    if ":" in name:
        factory = factories.find("architecture", name)
    else:
        registered = _ARCHITECTURES[name]
        factory = next(registered[kind] for kind in type(game).__mro__ if kind in registered)
    model: Model
    if name in _BUILT_IN:
        model = factory(game, SIZES[size], key)
        _check_outputs(game, name, model)
    else:
        model = factories.call(f"architecture {name!r}", factory, game, SIZES[size], key)
        factories.call(f"architecture {name!r}", _check_outputs, game, name, model)
    return model


def _check_outputs(game: Game[Any], name: str, model: Model) -> None:
    """Raise ``ValueError`` if the outputs of a network do not have the game's shapes."""
    if not callable(model):
        raise ValueError(f"it gives {model!r}, which is not a network")
    interface = network_interface(game, model)
    outputs = jax.eval_shape(model, observation_spec(interface, game))
    shapes = (interface.num_logits,), (game.num_players,), (game.num_players,)
    given = outputs.logits.shape, outputs.outcome_logits.shape, outputs.score_logits.shape
    if given != shapes:
        raise ValueError(f"the network {name} gives {list(given)}; {game.id} needs {list(shapes)}")


def resolve(game: Game[Any], architecture: str, registered_by: str = "") -> str:
    """The name of an architecture, "default" resolved.

    Raises ``ValueError`` if the game has no such architecture; ``registered_by`` names the module or file that registers it.
    """
    name = _default(game) if architecture == DEFAULT else architecture
    if ":" not in name and name not in architectures(game):
        names = [DEFAULT, *architectures(game)]
        hint, known = did_you_mean(name, names), ", ".join(names)
        source = f"; {registered_by} registered it when the network was trained" if registered_by else ""
        module = registered_by or "MODULE"
        preset = f" (train takes --preset {module} as well)" if module.endswith(".py") else ""
        raise ValueError(
            f"network.architecture {architecture!r} is not registered for {game.id} here{hint}{source}; registered are {known}."
            f" Give --import {module}{preset}, with the module that registers it, or name the architecture module:factory"
        )
    return name


def registered_by(architecture: str) -> str | None:
    """The module or file that registered an architecture, as the user gave it.

    Empty if the architecture is built in, or was registered otherwise; ``None`` if it is not registered in this process.
    """
    if architecture == DEFAULT or ":" in architecture:
        return ""
    return _MODULES.get(architecture)


def _default(game: Game[Any]) -> str:
    return next((_DEFAULTS[kind] for kind in type(game).__mro__ if kind in _DEFAULTS), "mlp")


register_architecture("mlp", ResidualMLP, default=True)
register_architecture("resnet", PolyominoResNet, PolyominoGame, default=True)
register_architecture("linear_policy_mlp", PolyominoMLP, PolyominoGame)
register_architecture("placement_policy_mlp", partial(PolyominoMLP, policy=PerceptronPolicy), PolyominoGame)
register_architecture("resnet", SantoriniResNet, SantoriniGame, default=True)
register_architecture("reach_resnet", SantoriniReachNet, SantoriniGame)
register_architecture("message_passing", TriominosMessagePassing, TriominosGame, default=True)
_BUILT_IN = frozenset(_ARCHITECTURES)
