"""Chance events of a round of Triominos: tiles dealt and drawn one by one."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tilewe_jax.bits import WORD_BITS
from tilewe_jax.chance import Chance, Event
from tilewe_jax.games.triominos.host import starters
from tilewe_jax.games.triominos.tiles import digits, rank

_RESAMPLES = 1000
"""Maximum number of attempts to resample a deal with the same first player."""


class TriominosDeal(Chance):
    """The deal of a round, seat by seat, then the choice of the first player, and later draws.

    An outcome is the id of a tile, or the first player after the deal.
    """

    def __init__(self, game: Any) -> None:
        config = game.config
        self._num_dealt = config.players * config.dealt
        super().__init__(game, max(config.tiles, config.players), config.tiles + 1)

    def deal_outcomes(self, dealt: Sequence[int]) -> list[int]:
        """The remaining tiles; after the deal, the players who may start if there are several."""
        if len(dealt) < self._num_dealt:
            return sorted(set(range(self.game.config.tiles)) - set(dealt))
        players = starters(self.game.config, dealt)
        return players if len(dealt) == self._num_dealt and len(players) > 1 else []

    def deal_event(self, dealt: Sequence[int], outcome: int) -> Event:
        """A tile, seen by its owner, or the first player."""
        if len(dealt) == self._num_dealt:
            return Event(-1, outcome)
        owner = len(dealt) // self.game.config.dealt
        return Event(-1, outcome, owner, outcome, owner)

    def start(self, dealt: Sequence[int]) -> Any:
        """The initial state with these trays; the order of the pile is arbitrary."""
        tiles = list(dealt[: self._num_dealt])
        starter = dealt[-1] if len(dealt) > self._num_dealt else starters(self.game.config, dealt)[0]
        order = tiles + sorted(set(range(self.game.config.tiles)) - set(tiles))
        names = [digits(self.game.config.tile_list[tile]) for tile in order]
        return self.game.init_from_deal({"tiles": names, "starter": starter, "seed": [0, 0]})

    def draw_outcomes(self, state: Any, action: int) -> list[int]:
        """The tiles of the pile for the action ``draw``; otherwise empty."""
        if action != self.game.config.draw:
            return []
        return np.flatnonzero(np.asarray(state.order) >= int(state.drawn)).tolist()

    def draw_event(self, state: Any, outcome: int) -> Event:
        """A tile, seen by the player to move."""
        player = int(state.current_player)
        return Event(-1, outcome, player, outcome, player)

    def with_draw(self, state: Any, outcome: int) -> Any:
        """Move a tile to the top of the pile."""
        order, drawn = np.array(state.order), int(state.drawn)
        order[order == drawn] = order[outcome]
        order[outcome] = drawn
        return replace(state, order=order)

    def name(self, event: Event) -> str:
        """A tile and the player who receives it, or the first player."""
        if event.tile is None:
            return f"player {event.action + 1} starts"
        assert event.owner is not None
        return f"{digits(self.game.config.tile_list[event.tile])} to player {event.owner + 1}"

    def resample(
        self, state: Any, events: Sequence[Event], player: int, uniform: Callable[[], float]
    ) -> tuple[Any, list[Event]]:
        """Redistribute the hidden tiles uniformly among all histories in which players receive tiles before placing them."""
        for _ in range(_RESAMPLES):
            trays, pile = self._resampled_trays(state, player, uniform)
            resampled = self._resampled_events(events, trays, player, uniform)
            if self._could_start(resampled, int(state.starter)):
                break
        else:
            raise ValueError(f"resampling the deal failed: another player starts in all of {_RESAMPLES} attempts")
        order = np.full(self.game.config.tiles, -1, np.int8)
        order[pile] = int(state.drawn) + np.arange(len(pile))
        words = np.zeros_like(np.asarray(state.trays))
        for seat, tray in enumerate(trays):
            for tile in tray:
                words[seat, tile // WORD_BITS] |= np.uint32(1 << tile % WORD_BITS)
        return replace(state, trays=words, order=order), resampled

    def _resampled_trays(self, state: Any, player: int, uniform: Callable[[], float]) -> tuple[list[list[int]], list[int]]:
        """The tiles of each player and of the pile, with the tiles hidden from ``player`` shuffled."""
        trays = [self._tiles_of(words) for words in np.asarray(state.trays)]
        placed = np.flatnonzero(np.asarray(state.table.placed_at) >= 0).tolist()
        unseen = _shuffled(sorted(set(range(self.game.config.tiles)) - set(placed) - set(trays[player])), uniform)
        for seat, tray in enumerate(trays):
            if seat != player:
                trays[seat], unseen = unseen[: len(tray)], unseen[len(tray) :]
        return trays, unseen

    def _resampled_events(
        self, events: Sequence[Event], trays: Sequence[Sequence[int]], player: int, uniform: Callable[[], float]
    ) -> list[Event]:
        """Replace the tiles that other players received such that they hold ``trays`` in the end."""
        resampled = list(events)
        for seat, tray in enumerate(trays):
            if seat == player:
                continue
            free = [i for i, event in enumerate(events) if event.player < 0 and event.owner == seat]
            # A tile is received before it is placed. The number of free events of a tile does not depend on the choices for
            # earlier tiles, so that all assignments are equally likely.
            placed = [(i, event.tile) for i, event in enumerate(events) if event.player == seat and event.tile is not None]
            last = [(len(events), tile) for tile in _shuffled(list(tray), uniform)]
            for time, tile in [*placed, *last]:
                earlier = [i for i in free if i < time]
                place = earlier[int(uniform() * len(earlier))]
                free.remove(place)
                assert tile is not None
                resampled[place] = replace(events[place], action=tile, tile=tile)
        return resampled

    def _could_start(self, events: Sequence[Event], starter: int) -> bool:
        """Return whether the round starts correctly: with ``start="highest"``, with the highest tile."""
        if self.game.config.start != "highest":
            return True
        dealt = [event.action for event in events[: self._num_dealt]]
        players, first = starters(self.game.config, dealt), next((event for event in events if event.player >= 0), None)
        had_choice = len(events) > self._num_dealt and events[self._num_dealt].player < 0
        if (len(players) > 1) != had_choice or starter not in players:
            return False
        if first is None or first.tile is None:
            return True
        tile, tiles = self.game.config.tile_list[first.tile], self.game.config.tile_list
        tray = [tiles[tile] for tile, event in zip(dealt, events, strict=False) if event.owner == first.player]
        return tile == (0, 0, 0) or rank(tile) == max(map(rank, tray))

    def _tiles_of(self, words: Any) -> list[int]:
        return [tile for tile in range(self.game.config.tiles) if int(words[tile // WORD_BITS]) >> tile % WORD_BITS & 1]

    def action_event(self, player: int, action: int, before: Any, after: Any) -> Event:
        """An action with the tile that it removes from the tray of the player, if any."""
        removed = np.asarray(before.trays)[player] & ~np.asarray(after.trays)[player]
        tile = next(iter(self._tiles_of(removed)), None)
        return Event(player, action, tile=tile, owner=player)


def _shuffled(tiles: list[int], uniform: Callable[[], float]) -> list[int]:
    for i in range(len(tiles) - 1, 0, -1):
        j = int(uniform() * (i + 1))
        tiles[i], tiles[j] = tiles[j], tiles[i]
    return tiles
