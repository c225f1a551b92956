"""Triominos as a ``Game``."""

from dataclasses import dataclass, fields
from functools import partial, wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int8, Int32, PRNGKeyArray

from tilewe_jax.bits import WORD_BITS, popcount
from tilewe_jax.chance import Chance
from tilewe_jax.game import Action, ActionLike, Game, Policy, as_action, check_state
from tilewe_jax.games.triominos import heuristics, observation, policies, rules
from tilewe_jax.games.triominos.chance import TriominosDeal
from tilewe_jax.games.triominos.config import VERSION, Config
from tilewe_jax.games.triominos.figure import Placement
from tilewe_jax.games.triominos.host import Position, read_deal, unwrap
from tilewe_jax.games.triominos.rules import State
from tilewe_jax.games.triominos.setup import position_format
from tilewe_jax.games.triominos.tiles import digits
from tilewe_jax.host import PositionFormat, is_position
from tilewe_jax.lanes import random_words, rule_per_lane, while_any

NEXT_ROUND_DIVISOR = 32
"""Each pass deals the next rounds of ``lanes / NEXT_ROUND_DIVISOR`` games. Most rounds have more steps than this divisor, so
that one pass suffices in most steps."""


@dataclass(frozen=True)
class TriominosGame(Game[State]):
    """Triominos with hidden trays and a pile.

    A placement has the action id ``cell * numbers + third``: a cell of the torus, ``row * columns + column``, and the number at
    its free corner (``table.free_corner``), which determine the tile and its orientation. Then follow the first tiles of a
    round, ``config.first + tile``, then draw and pass.

    >>> import jax
    >>> game = TriominosGame(Config(tiles=4, tray=2))
    >>> state = game.init(jax.random.key(0))
    >>> position = game.host(state)
    >>> position.trays[position.current_player]
    ((0, 0, 1), (1, 1, 1))
    >>> [position.describe(action) for action in position.legal_actions()]
    [('001', 'ABC', (0, 0)), ('111', 'ABC', (0, 0)), 'pass']
    """

    config: Config
    """The settings."""

    version = VERSION

    @property
    def id(self) -> str:
        return "triominos"

    @property
    def options(self) -> dict[str, Any]:
        given = {field.name: (getattr(self.config, field.name), field.default) for field in fields(Config)}
        changed = {name: value for name, (value, default) in given.items() if value != default}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in changed.items()}

    @property
    def num_players(self) -> int:
        return self.config.players

    @property
    def num_actions(self) -> int:
        return self.config.num_actions

    @property
    def max_steps(self) -> int:
        return self.config.max_steps

    def init(self, key: PRNGKeyArray) -> State:
        return rules.init(self.config, key)

    def apply(self, state: State, action: Action) -> State:
        check_state(self, state)
        if self.config.rounds == 1:
            return rules.apply_in_round(self.config, state, as_action(action))
        return rule_per_lane(_apply_over_rounds, self.config)(state, as_action(action))

    def is_legal(self, state: State, action: ActionLike) -> Bool[Array, ""]:
        check_state(self, state)
        return rules.is_legal(self.config, state, as_action(action))

    def legal_action_mask(self, state: State) -> Bool[Array, "num_actions"]:
        check_state(self, state)
        mask, actions = self.compact_mask(state), self.compact_actions(state)
        return jnp.zeros(self.num_actions, jnp.bool_).at[jnp.where(mask, actions, self.num_actions)].set(True, mode="drop")

    def num_legal(self, state: State) -> Int32[Array, ""]:
        return jnp.sum(popcount(rules.legal_words(self.config, state)), dtype=jnp.int32)

    def sample_action(self, state: State, key: PRNGKeyArray) -> Action:
        return rules.sample_action(self.config, state, rules.legal_words(self.config, state), random_words(key, 1)[0])

    def playout_action(self, state: State, key: PRNGKeyArray) -> Action:
        """Choose the best by ``heuristic_logits`` among draw or pass and seven random placements; -1 at the end."""
        words = rules.legal_words(self.config, state)
        placements = rules.sample_actions(self.config, state, words.at[-1].set(0), random_words(key, 1)[0], 7)
        return self.best_action(state, jnp.concatenate([rules.draw_or_pass(self.config, words)[None], placements]))

    @property
    def num_compact(self) -> int:
        """Length of ``compact_mask``."""
        return self.config.frontier_size * self.config.numbers + self.config.tiles + 2

    def compact_mask(self, state: State) -> Bool[Array, "num_compact"]:
        """Mask of the legal actions restricted to the frontier: ``slot * numbers + third``, first tiles, draw, pass.

        ``compact_actions`` maps its entries to action ids, which depend on the state.
        """
        words, size = rules.legal_words(self.config, state), self.config.frontier_size
        parts = words[:size], words[size:-1], words[-1:]
        bits = zip(parts, (self.config.numbers, WORD_BITS, 2), strict=True)
        placements, tiles, draw_or_pass = (
            ((part[:, None] >> np.arange(count, dtype=np.uint32)[None]) & np.uint32(1) != 0).ravel() for part, count in bits
        )
        return jnp.concatenate([placements, tiles[: self.config.tiles], draw_or_pass])

    def compact_actions(self, state: State) -> Int32[Array, "num_compact"]:
        """The action id of each entry of ``compact_mask``; negative for empty slots."""
        cells = state.table.frontier.astype(jnp.int32)[:, None] * self.config.numbers
        placements = (cells + np.arange(self.config.numbers, dtype=np.int32)[None]).ravel()
        return jnp.concatenate([placements, jnp.arange(self.config.first, self.num_actions, dtype=jnp.int32)]).astype(jnp.int32)

    @property
    def num_logits(self) -> int:
        """Length of ``compact_mask``: networks have one logit per entry."""
        return self.num_compact

    def gather_logits(
        self, state: State, logits: Float32[Array, "num_compact"], actions: Int32[Array, "k"]
    ) -> Float32[Array, "k"]:
        """Select logits by entries of ``compact_mask``, because observations list slots of the frontier, not cells."""
        cell, third = actions // self.config.numbers, actions % self.config.numbers
        slot = jnp.argmax(state.table.frontier.astype(jnp.int32)[None] == cell[:, None], axis=1).astype(jnp.int32)
        rest = actions - self.config.first + self.config.frontier_size * self.config.numbers
        entry = jnp.where(actions < self.config.first, slot * self.config.numbers + third, rest)
        return jnp.take(logits, entry, mode="clip")

    def legal_list(self, state: State, size: int) -> Int32[Array, "size"]:
        """The first ``size`` legal actions, padded with -1. Observed maxima are 64 with 56 tiles and 96 with 84 tiles."""
        (entries,) = jnp.nonzero(self.compact_mask(state), size=size, fill_value=self.num_compact)
        return jnp.take(self.compact_actions(state), entries, mode="fill", fill_value=-1)

    def nth_legal(self, state: State, ranks: Int32[Array, "k"]) -> Int32[Array, "k"]:
        return rules.nth_action(self.config, state, rules.legal_words(self.config, state), ranks)

    def heuristic_logits(self, state: State, actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
        """Weighted sums of ``heuristics.LOGIT_FEATURES``."""
        return heuristics.heuristic_logits(self.config, state, actions)

    def heuristic_features(self, state: State, actions: Int32[Array, "k"]) -> Float32[Array, "k features"]:
        """The features of ``heuristic_logits``, see ``heuristics``."""
        return heuristics.heuristic_features(self.config, state, actions)

    @property
    def heuristic_weights(self) -> dict[str, tuple[float, ...]]:
        """Weights of ``heuristic_features`` by name: the value at the start of a round, and its increase during the round."""
        table = heuristics.heuristic_weights(self.config).T.tolist()
        return dict(zip(heuristics.LOGIT_FEATURES, map(tuple, table), strict=True))

    def heuristic_value(self, state: State) -> Float32[Array, "players"]:
        """Value from the points, see ``heuristics``."""
        return heuristics.heuristic_value(state)

    def current_player(self, state: State) -> Int32[Array, ""]:
        return state.current_player

    def is_terminal(self, state: State) -> Bool[Array, ""]:
        return rules.is_round_over(self.config, state)

    def is_truncated(self, state: State) -> Bool[Array, ""]:
        """Return whether ``max_rounds`` ended a game to a target."""
        is_short = (self.config.game == "target") & (jnp.max(state.scores) < self.config.target)
        return self.is_terminal(state) & is_short

    def scores(self, state: State) -> Int32[Array, "players"]:
        return state.scores

    def returns(self, state: State) -> Float32[Array, "players"]:
        best = (state.scores == jnp.max(state.scores)) & self.is_terminal(state)
        return best.astype(jnp.float32) / jnp.maximum(jnp.sum(best, dtype=jnp.int32), 1).astype(jnp.float32)

    def observe(self, state: State, player: Int32[Array, ""]) -> Float32[Array, "size"]:
        """The concatenated blocks of ``observation.layout``; ``split`` separates them."""
        check_state(self, state)
        return observation.observe(self.config, state, jnp.asarray(player, jnp.int32))

    def split(self, observed: Float32[Array, "*batch size"]) -> dict[str, Float32[Array, "*batch rows columns"]]:
        """Split an observation into blocks by name, see ``observation.layout``."""
        return observation.split(self.config, observed)

    def board_of(self, state: State) -> Int8[Array, "4 rows columns"]:
        """Tile ids and numbers at the left, middle and right corner for each cell of the torus; -1 for free cells."""
        return observation.board_of(self.config, state)

    def chance(self) -> Chance:
        if self.config.game == "single":
            return TriominosDeal(self)
        raise ValueError("triominos with several rounds does not list its chance outcomes")

    @property
    def has_hidden_information(self) -> bool:
        return True

    def determinize(self, state: State, player: Int32[Array, ""], key: PRNGKeyArray) -> State:
        """Redistribute the tiles hidden from ``player`` among the pile and the other trays, whose sizes stay the same."""
        return rules.determinize(self.config, state, jnp.asarray(player, jnp.int32), key)

    def host(self, state: State) -> Position:
        """Convert a state to a ``Position``."""
        check_state(self, state)
        state = jax.device_get(state)
        tiles = self.config.tile_list
        pile = sorted((int(order), tile) for order, tile in zip(state.order, tiles, strict=True) if order >= state.drawn)
        rows = zip(tiles, state.table.orientation.tolist(), state.table.placed_at.tolist(), strict=True)
        placed = [(tile, orientation, cell) for tile, orientation, cell in rows if cell >= 0]
        taken = [cell for *_, cell in placed]
        first_word, second_word = state.seed.tolist()
        return Position(
            config=self.config,
            placements=tuple((tile, orientation, unwrap(self.config, cell, taken)) for tile, orientation, cell in placed),
            trays=tuple(
                tuple(tile for i, tile in enumerate(tiles) if tray[i // WORD_BITS] >> (i % WORD_BITS) & 1)
                for tray in state.trays.tolist()
            ),
            pile=tuple(tile for _, tile in pile),
            points=tuple(state.scores.tolist()),
            current_player=int(state.current_player),
            draws=int(state.draws),
            passes=int(state.passes),
            starter=int(state.starter),
            round=int(state.round),
            seed=(first_word, second_word),
        )

    def action_of(self, what: Placement | str, state: State) -> int:
        """The id of a legal action, see ``Position.action``.

        Args:
          what: a placement ``("125", "CAB", (2, -1))``, ``"draw"`` or ``"pass"``.
          state: the position.

        Raises ``IllegalActionError`` for an illegal action, ``ValueError`` for an invalid one.
        """
        return self.host(state).action(what)

    def describe(self, state: State, action: int) -> Placement | str:
        """A legal action as a placement, ``"draw"`` or ``"pass"``. Raises ``IllegalActionError``."""
        return self.host(state).describe(int(action))

    def action_name(self, action: int, state: State) -> str:
        """The name of a legal action: ``125-CAB@2,-1``, ``draw`` or ``pass``. Raises ``IllegalActionError``."""
        return self.host(state).action_name(int(action))

    def action_of_name(self, name: str, state: State) -> int:
        """The inverse of ``action_name``. Raises like ``action_of``, and ``ValueError`` for an invalid name."""
        return self.host(state).action_of_name(name)

    def text(self, state: State, color: bool = False) -> str:
        return self.host(state).text(color)

    def svg(self, state: State) -> str:
        return self.host(state).svg()

    def deal(self, state: State) -> Any:
        """The tiles in dealing and drawing order, the first player, and the seed of later deals."""
        order = np.argsort(np.asarray(state.order))
        tiles = [digits(self.config.tile_list[tile]) for tile in order]
        return {"tiles": tiles, "starter": int(state.starter), "seed": np.asarray(state.seed).tolist()}

    @property
    def positions(self) -> PositionFormat:
        return position_format(self.config)

    def state_of(self, position: Position) -> State:
        if position.config != self.config:
            raise ValueError("the position is of a game with other options")
        return rules.state_of(position)

    def init_from_deal(self, deal: Any) -> State:
        if is_position(deal):
            return super().init_from_deal(deal)
        order, starter, seed = read_deal(self.config, deal)
        state: State = _start_round(
            self.config,
            np.zeros(self.num_players, np.int32),
            np.int32(0),
            np.array(seed, np.uint32),
            np.argsort(order).astype(np.int8),
            2 * (np.arange(self.num_players) == starter).astype(np.uint32),
            np.ones(self.num_players, np.bool_),
        )
        return state

    def policies(self) -> dict[str, Policy]:
        """``random`` and the combinations of strategies in ``policies``."""
        return {**super().policies(), **policies.policies(self.config)}


def _apply_over_rounds(config: Config, state: State, action: Int32[Array, "lanes"]) -> State:
    """``rules.apply_in_round`` in every lane, followed by the deal of the next round if the round is over."""
    over_lanes = partial(jax.vmap, in_axes=-1, out_axes=-1)
    needed = over_lanes(partial(rules.needs_next_round, config))
    deal = over_lanes(partial(rules.next_round, config))
    after = over_lanes(partial(rules.apply_in_round, config))(state, action)
    return while_any(needed, lambda _, state: deal(state), (), after, NEXT_ROUND_DIVISOR)


_start_round = jax.jit(rules.start_round, static_argnums=0)


@wraps(Config, updated=())
def _make(**options: Any) -> TriominosGame:
    return TriominosGame(Config(**options))


GAMES = {"triominos": _make}
"""Factories of games by id."""
