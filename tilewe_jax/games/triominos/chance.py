"""The chance of a round of Triominos for packages that walk trees: tiles dealt and drawn one by one."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tilewe_jax.bits import WORD_BITS
from tilewe_jax.chance import Chance, Event
from tilewe_jax.games.triominos.tiles import digits, rank

_RESAMPLES = 1000
"""Attempts to deal hidden tiles so that the same player begins."""


class TriominosDeal(Chance):
    """A round of Triominos: tiles dealt one by one, seat by seat, then the player who starts, and tiles drawn later.

    An outcome is the id of a tile, or a player who starts, after all tiles.
    """

    def __init__(self, game: Any) -> None:
        config = game.config
        self._num_dealt = config.players * config.dealt
        super().__init__(game, max(config.tiles, config.players), config.tiles + 1)

    def deal_outcomes(self, dealt: Sequence[int]) -> list[int]:
        """The tiles that are left, then the players who may start, where several may."""
        if len(dealt) < self._num_dealt:
            return sorted(set(range(self.game.config.tiles)) - set(dealt))
        starters = self._starters(dealt)
        return starters if len(dealt) == self._num_dealt and len(starters) > 1 else []

    def deal_event(self, dealt: Sequence[int], outcome: int) -> Event:
        """A tile, which its owner sees, or the player who starts."""
        if len(dealt) == self._num_dealt:
            return Event(-1, outcome)
        owner = len(dealt) // self.game.config.dealt
        return Event(-1, outcome, owner, outcome, owner)

    def start(self, dealt: Sequence[int]) -> Any:
        """The trays as dealt; the order of the pile is arbitrary."""
        tiles = list(dealt[: self._num_dealt])
        starter = dealt[-1] if len(dealt) > self._num_dealt else self._starters(dealt)[0]
        order = tiles + sorted(set(range(self.game.config.tiles)) - set(tiles))
        names = [digits(self.game.config.tile_list[tile]) for tile in order]
        return self.game.init_from_deal({"tiles": names, "starter": starter, "seed": [0, 0]})

    def draw_outcomes(self, state: Any, action: int) -> list[int]:
        """The tiles of the pile, for the action that draws."""
        if action != self.game.config.draw:
            return []
        return np.flatnonzero(np.asarray(state.order) >= int(state.drawn)).tolist()

    def draw_event(self, state: Any, outcome: int) -> Event:
        """A tile, which the player to move sees."""
        player = int(state.current_player)
        return Event(-1, outcome, player, outcome, player)

    def with_draw(self, state: Any, outcome: int) -> Any:
        """The same pile with this tile to be drawn next."""
        order, drawn = np.array(state.order), int(state.drawn)
        order[order == drawn] = order[outcome]
        order[outcome] = drawn
        return replace(state, order=order)

    def name(self, event: Event) -> str:
        """A tile and who gets it, or the player who starts."""
        if event.tile is None:
            return f"player {event.action + 1} starts"
        assert event.owner is not None
        return f"{digits(self.game.config.tile_list[event.tile])} to player {event.owner + 1}"

    def resample(
        self, state: Any, events: Sequence[Event], player: int, uniform: Callable[[], float]
    ) -> tuple[Any, list[Event]]:
        """Hidden tiles dealt anew, all ways being equally likely in which others could have got them in time to place them."""
        for _ in range(_RESAMPLES):
            trays, pile = self._resampled_trays(state, player, uniform)
            resampled = self._resampled_events(events, trays, player, uniform)
            if self._could_start(resampled, int(state.starter)):
                break
        else:
            raise ValueError(f"no deal was drawn in {_RESAMPLES} attempts in which the same player begins")
        order = np.full(self.game.config.tiles, -1, np.int8)
        order[pile] = int(state.drawn) + np.arange(len(pile))
        words = np.zeros_like(np.asarray(state.trays))
        for seat, tray in enumerate(trays):
            for tile in tray:
                words[seat, tile // WORD_BITS] |= np.uint32(1 << tile % WORD_BITS)
        return replace(state, trays=words, order=order), resampled

    def _resampled_trays(self, state: Any, player: int, uniform: Callable[[], float]) -> tuple[list[list[int]], list[int]]:
        """The tiles of each player and of the pile, those that ``player`` does not see shuffled."""
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
        """The events with the tiles that other players have got replaced, so that they hold ``trays`` in the end."""
        resampled = list(events)
        for seat, tray in enumerate(trays):
            if seat == player:
                continue
            free = [i for i, event in enumerate(events) if event.player < 0 and event.owner == seat]
            # A tile was got before it was placed. Each has as many free places as were there before, less those taken by
            # earlier ones, whichever these are, so that all assignments are equally likely.
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
        """Whether the round begins with the highest tile, where it must."""
        if self.game.config.start != "highest":
            return True
        dealt = [event.action for event in events[: self._num_dealt]]
        starters, first = self._starters(dealt), next((event for event in events if event.player >= 0), None)
        had_choice = len(events) > self._num_dealt and events[self._num_dealt].player < 0
        if (len(starters) > 1) != had_choice or starter not in starters:
            return False
        if first is None or first.tile is None:
            return True
        tile, tiles = self.game.config.tile_list[first.tile], self.game.config.tile_list
        tray = [tiles[tile] for tile, event in zip(dealt, events, strict=False) if event.owner == first.player]
        return tile == (0, 0, 0) or rank(tile) == max(map(rank, tray))

    def _starters(self, dealt: Sequence[int]) -> list[int]:
        """The players who may start."""
        config = self.game.config
        if config.start != "highest":
            return list(range(config.players))
        tiles = [rank(config.tile_list[tile]) for tile in dealt[: self._num_dealt]]
        ranks = [sorted(tiles[i : i + config.dealt], reverse=True) for i in range(0, self._num_dealt, config.dealt)]
        return [player for player in range(config.players) if ranks[player] == max(ranks)]

    def _tiles_of(self, words: Any) -> list[int]:
        return [tile for tile in range(self.game.config.tiles) if int(words[tile // WORD_BITS]) >> tile % WORD_BITS & 1]

    def action_event(self, player: int, action: int, before: Any, after: Any) -> Event:
        """An action with the tile that it has taken from the tray of the player."""
        gone = np.asarray(before.trays)[player] & ~np.asarray(after.trays)[player]
        tile = next(iter(self._tiles_of(gone)), None)
        return Event(player, action, tile=tile, owner=player)


def _shuffled(tiles: list[int], uniform: Callable[[], float]) -> list[int]:
    for i in range(len(tiles) - 1, 0, -1):
        j = int(uniform() * (i + 1))
        tiles[i], tiles[j] = tiles[j], tiles[i]
    return tiles
