"""Games in plain Python by name. Ours need no JAX; those of others are asked on the device."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from tilewe_jax.games.polyomino import config as polyomino
from tilewe_jax.games.polyomino import position as polyomino_host
from tilewe_jax.games.santorini import config as santorini
from tilewe_jax.games.santorini import host as santorini_host
from tilewe_jax.games.triominos import config as triominos
from tilewe_jax.games.triominos import host as triominos_host
from tilewe_jax.host import HostGame, HostPosition
from tilewe_jax.settings import checked_options

_GAMES: dict[str, tuple[Callable[..., Any], Callable[[Any], HostGame]]] = {
    **{name: (variant, polyomino_host.host_game) for name, variant in polyomino.VARIANTS.items()},
    "santorini": (santorini.santorini, santorini_host.host_game),
    "triominos": (triominos.triominos, triominos_host.host_game),
}
"""For each game the function that makes its settings of its options, and the one that makes its host form of them."""


def make_host_game(name: str, **given: Any) -> HostGame:
    """The host form of a game.

    Args:
      name: the id of the game, as for ``tilewe_jax.make``.
      **given: its options; a list stands for a tuple, as in JSON.

    Raises ``ValueError`` as ``tilewe_jax.make`` does.

    >>> game = make_host_game("tilewe", players=2, size=5)
    >>> game.init_from_deal(None).after(0).scores()
    (1, 0)
    """
    if isinstance(name, str) and name in _GAMES:
        settings, host_game = _GAMES[name]
        values = checked_options(name, inspect.signature(settings).parameters, given)
        return replace(host_game(settings(**values)), options=given)
    from tilewe_jax.registry import make

    game = make(name, **given)
    return HostGame(
        id=game.id,
        version=game.version,
        num_players=game.num_players,
        num_actions=game.num_actions,
        max_steps=game.max_steps,
        init_from_deal=partial(_position_of_deal, game),
        options=given,
    )


def _position_of_deal(game: Any, deal: Any) -> HostPosition:
    """The initial position of a deal, of a game without a form in plain Python."""
    position: HostPosition = game.host(game.init_from_deal(deal))
    return position
