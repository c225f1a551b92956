"""Games in plain Python by name, and as they are offered. Ours need no JAX; those of others are asked on the device."""

import inspect
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from random import Random
from types import MappingProxyType
from typing import Any

from tilewe_jax.games import modules
from tilewe_jax.host import HostGame, HostPosition, Offer
from tilewe_jax.settings import checked_options

_OFFERS: dict[str, Offer] = {name: offer for folder in modules("offers") for name, offer in folder.OFFERS.items()}
OFFERS: Mapping[str, Offer] = MappingProxyType(_OFFERS)
"""The games that are offered by id, in the order in which they are offered."""


def offer(name: str, how: Offer) -> None:
    """Offer a game to people: on the page of a server in this process, and in the terminal.

    Args:
      name: its id, as for ``tilewe_jax.register``.
      how: how it is offered.

    Raises ``ValueError`` where another game is offered by this name.
    """
    if _OFFERS.setdefault(name, how) is not how:
        raise ValueError(f"a game {name!r} is offered already")


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
    known = _OFFERS.get(name) if isinstance(name, str) else None
    if known and known.settings and known.host_game:
        values = checked_options(name, inspect.signature(known.settings).parameters, given)
        return replace(known.host_game(known.settings(**values)), options=given)
    from tilewe_jax.registry import make

    return replace(asked_on_device(make(name, **given)), options=given)


def asked_on_device(game: Any) -> HostGame:
    """The host form of any ``Game``, whose functions on the device are asked."""
    return HostGame(
        id=game.id,
        version=game.version,
        num_players=game.num_players,
        num_actions=game.num_actions,
        max_steps=game.max_steps,
        init_from_deal=partial(_position_of_deal, game),
        options=game.options,
        has_hidden_information=game.has_hidden_information,
        new_deal=partial(_new_deal, game),
        returns=_returns,
    )


def _position_of_deal(game: Any, deal: Any) -> HostPosition:
    """The initial position of a deal, of a game without a form in plain Python."""
    position: HostPosition = game.host(game.init_from_deal(deal))
    return position


def _new_deal(game: Any, chance: Random) -> Any:
    import jax

    return game.deal(game.init(jax.random.key(chance.getrandbits(32))))


def _returns(position: Any) -> tuple[float, ...]:
    """The outcome of a position of a game without a form in plain Python."""
    returns: tuple[float, ...] = tuple(position.game.returns(position.state).tolist())
    return returns
