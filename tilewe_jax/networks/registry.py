"""Network architectures by name.

``register_architecture`` adds an architecture. The setting ``network.architecture`` is its name, or a factory
``module:factory``. Games without a registered architecture use the multilayer perceptron.
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
from tilewe_jax.networks.base import SIZES, Model, Size, check_outputs
from tilewe_jax.networks.mlp import ResidualMLP
from tilewe_jax.networks.polyomino import PolyominoResNet
from tilewe_jax.networks.polyomino_mlp import PerceptronPolicy, PolyominoMLP
from tilewe_jax.networks.santorini import SantoriniReachNet, SantoriniResNet
from tilewe_jax.networks.triominos import TriominosMessagePassing
from tilewe_jax.search.exported import network_interface, observation_spec
from tilewe_jax.utils import factories
from tilewe_jax.utils.words import did_you_mean

Architecture = Callable[[Any, Size, PRNGKeyArray], Model]
"""Creates a network with random weights from a game, a size and a key."""

DEFAULT = "default"
"""Name of the default architecture of a game."""

_ARCHITECTURES: dict[str, dict[type[Any], Architecture]] = {}
_DEFAULTS: dict[type[Any], str] = {}
_MODULES: dict[str, str] = {}
"""Module or file that registered each architecture; empty if unknown."""


def register_architecture(name: str, factory: Architecture, game_type: type[Any] = Game, default: bool = False) -> None:
    """Register an architecture for the games of a class.

    Args:
        name: name in the settings. Different games may use the same name.
        factory: called with a game, a ``Size`` and a key.
        game_type: class of the games, by default all games.
        default: whether it becomes the default architecture of these games.

    Raises ``ValueError`` if the name is already registered for these games, is empty or "default", or has a colon.
    """
    if name in ("", DEFAULT):
        raise ValueError(f"the name of an architecture must not be empty or {DEFAULT!r}, got {name!r}")
    if ":" in name:
        raise ValueError(f"the name of an architecture must not contain a colon, got {name!r}")
    if _ARCHITECTURES.get(name, {}).get(game_type, factory) is not factory:
        raise ValueError(f"architecture {name!r} is already registered for {game_type.__name__}")
    _ARCHITECTURES.setdefault(name, {})[game_type] = factory
    _MODULES.setdefault(name, factories.being_loaded())
    if default:
        _DEFAULTS[game_type] = name


def architectures(game: Game[Any]) -> list[str]:
    """Return the names of the architectures for a game, its default first."""
    names = [name for name, kinds in _ARCHITECTURES.items() if any(isinstance(game, kind) for kind in kinds)]
    return sorted(names, key=lambda name: (name != _default(game), name))


def make(game: Game[Any], architecture: str, size: str, key: PRNGKeyArray, registered_by: str = "") -> Model:
    """Create a network for a game, with random weights.

    Args:
        game: the game.
        architecture: a registered name, "default", or ``module:factory``.
        size: one of ``SIZES``.
        key: random key of the weights.
        registered_by: module or file that registers the architecture, for the error message.

    Raises ``ValueError`` for unknown names, and if a user-supplied architecture raises or has outputs of other shapes than the
    game needs.
    """
    if size not in SIZES:
        raise ValueError(f"network.size must be one of {', '.join(SIZES)}, not {size!r}{did_you_mean(size, SIZES)}")
    name = resolve(game, architecture, registered_by)
    factory: Architecture
    if ":" in name:
        factory = factories.find("architecture", name)
    else:
        registered = _ARCHITECTURES[name]
        factory = next(registered[kind] for kind in type(game).__mro__ if kind in registered)
    if name in _BUILT_IN:
        return factory(game, SIZES[size], key)

    def checked() -> Model:
        model = factory(game, SIZES[size], key)
        if not callable(model):
            raise TypeError(f"expected a network, got {model!r}")
        interface = network_interface(game, model)
        outputs = jax.eval_shape(model, observation_spec(interface, game))
        check_outputs(model, outputs, interface.num_logits, game.num_players)
        return model

    model: Model = factories.call(f"architecture {name!r}", checked)
    return model


def resolve(game: Game[Any], architecture: str, registered_by: str = "") -> str:
    """Return the name of an architecture, with "default" replaced.

    Raises ``ValueError`` for architectures that are not registered for the game. The message names ``registered_by``, the
    module or file that registers the architecture.
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
    """Return the module or file that registered an architecture, in the user's spelling.

    Empty for built-in architectures and unknown modules; ``None`` if the architecture is not registered in this process.
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
