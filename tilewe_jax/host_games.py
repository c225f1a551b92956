"""Host forms and offers of games by name. Built-in games have a plain-Python form; other games run on the device."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from random import Random
from types import MappingProxyType
from typing import Any

from tilewe_jax.games import modules
from tilewe_jax.host import POSITION, HostGame, HostPosition, Offer, PositionFormat, is_position
from tilewe_jax.settings import checked_options

_OFFERS: dict[str, Offer] = {name: offer for folder in modules("offers") for name, offer in folder.OFFERS.items()}
OFFERS: Mapping[str, Offer] = MappingProxyType(_OFFERS)
"""Offers by game id, in display order."""


def offer(name: str, how: Offer) -> None:
    """Offer a registered game on the page of a server in this process and in the terminal.

    Args:
      name: the id of the game, as for ``tilewe_jax.register``.
      how: the presentation of the game.

    Raises ``ValueError`` if the name already has another offer.
    """
    if _OFFERS.setdefault(name, how) is not how:
        raise ValueError(f"game {name!r} is already offered")


def make_host_game(name: str, **given: Any) -> HostGame:
    """Make the host form of a game.

    Args:
      name: the id of the game, as for ``tilewe_jax.make``.
      **given: options of the game; a list stands for a tuple, as in JSON.

    Raises ``ValueError`` like ``tilewe_jax.make``.

    >>> game = make_host_game("tilewe", players=2, size=5)
    >>> game.init_from_deal(None).after(0).scores()
    (1, 0)
    """
    known = _OFFERS.get(name) if isinstance(name, str) else None
    if known and known.settings and known.host_game:
        values = checked_options(name, inspect.signature(known.settings).parameters, given)
        settings = known.settings(**values)
        game = replace(known.host_game(settings), options=given)
        return game if known.positions is None else _with_positions(game, known.positions(settings))
    from tilewe_jax.registry import make

    return replace(asked_on_device(make(name, **given)), options=given)


def _with_positions(game: HostGame, positions: PositionFormat) -> HostGame:
    """Let a game start from positions, too."""
    return replace(game, positions=positions, init_from_deal=partial(_initial_position, game.init_from_deal, positions.read))


def _initial_position(from_deal: Callable[[Any], HostPosition], read: Callable[[Any], HostPosition], deal: Any) -> HostPosition:
    return read(deal[POSITION]) if is_position(deal) else from_deal(deal)


def asked_on_device(game: Any) -> HostGame:
    """The host form of any ``Game``, computed by its functions on the device."""
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
        positions=game.positions,
    )


def _position_of_deal(game: Any, deal: Any) -> HostPosition:
    position: HostPosition = game.host(game.init_from_deal(deal))
    return position


def _new_deal(game: Any, chance: Random) -> Any:
    import jax

    return game.deal(game.init(jax.random.key(chance.getrandbits(32))))


def _returns(position: Any) -> tuple[float, ...]:
    returns: tuple[float, ...] = tuple(position.game.returns(position.state).tolist())
    return returns
