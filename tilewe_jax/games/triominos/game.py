"""Triominos as a ``Game``."""

from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int8, Int32, PRNGKeyArray

from tilewe_jax.bits import WORD_BITS, popcount
from tilewe_jax.game import Action, Game, Policy, as_action
from tilewe_jax.games.triominos import observation, policies, rules
from tilewe_jax.games.triominos.config import Config, Length, Start
from tilewe_jax.games.triominos.figure import Placement
from tilewe_jax.games.triominos.host import Position, unwrapped
from tilewe_jax.games.triominos.rules import State
from tilewe_jax.games.triominos.tiles import HEX_SCORES, corners, digits, outline, parse_tile, tile_id
from tilewe_jax.lanes import per_lane, random_words, while_any
from tilewe_jax.render.svg import polygons

_COLORS = {1: "#f0c02c", 2: "#f1e3b5", 3: "#f4f2ee"}
"""By the number of different numbers on a tile."""
_SHARE_POINTS = 60.0
"""Points ahead that are a logit of the share of the win."""
ROUND_SHARE = 32
"""Rounds are longer than this many steps, mostly, so that one pass over the lanes whose round is over is enough in most."""


@dataclass(frozen=True)
class TriominosGame(Game[State]):
    """Triominos, by ``config``.

    Actions are placements, ``cell * numbers + third``: a cell of the torus, ``row * columns + column``, and the number that its
    free corner gets (the right one if a tile lies to the left of the cell, else the left one if a tile lies to the right, else
    the middle one), which decides tile and orientation; then tiles to begin a round with, ``config.first + tile``; then draw
    and pass.
    """

    config: Config

    version = 1

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
        return rules.initial(self.config, key)

    def apply(self, state: State, action: Action) -> State:
        turn = partial(rules.turn, self.config)
        if self.config.rounds == 1:
            return turn(state, as_action(action))
        each = partial(jax.vmap, in_axes=-1, out_axes=-1)

        def lanes(state: State, action: Action) -> State:
            # A new round is dealt only in lanes that need one.
            over = each(partial(rules.another_round, self.config))
            deal = each(partial(rules.next_round, self.config))
            return while_any(over, lambda _, state: deal(state), (), each(turn)(state, action), ROUND_SHARE)

        return per_lane(lanes)(state, as_action(action))

    def is_legal(self, state: State, action: Action) -> Bool[Array, ""]:
        return rules.is_legal(self.config, state, as_action(action))

    def legal_actions(self, state: State) -> Bool[Array, "num_actions"]:
        mask, actions = self.compact_mask(state), self.compact_actions(state)
        return jnp.zeros(self.num_actions, jnp.bool_).at[jnp.where(mask, actions, self.num_actions)].set(True, mode="drop")

    def num_legal(self, state: State) -> Int32[Array, ""]:
        return jnp.sum(popcount(rules.legal_words(self.config, state)), dtype=jnp.int32)

    def sample_action(self, state: State, key: PRNGKeyArray) -> Action:
        return rules.sample(self.config, state, rules.legal_words(self.config, state), random_words(key, 1)[0])

    @property
    def num_compact(self) -> int:
        """Length of ``compact_mask``."""
        return self.config.slots * self.config.numbers + self.config.tiles + 2

    def compact_mask(self, state: State) -> Bool[Array, "num_compact"]:
        """The legal actions, without the cells where nothing can lie: ``slot * numbers + third``, tiles to begin, draw, pass.

        Which action an entry means depends on the state, see ``compact_actions``.
        """
        words = rules.legal_words(self.config, state)
        parts = words[: self.config.slots], words[self.config.slots : -1], words[-1:]
        bits = zip(parts, (self.config.numbers, WORD_BITS, 2), strict=True)
        slots, tiles, other = (
            ((part[:, None] >> np.arange(count, dtype=np.uint32)[None]) & np.uint32(1) != 0).ravel() for part, count in bits
        )
        return jnp.concatenate([slots, tiles[: self.config.tiles], other])

    def compact_actions(self, state: State) -> Int32[Array, "num_compact"]:
        """The action of each entry of ``compact_mask``; negative for the entries of empty slots."""
        cells = state.table.cells.astype(jnp.int32)[:, None] * self.config.numbers
        placements = (cells + np.arange(self.config.numbers)[None]).ravel()
        return jnp.concatenate([placements, jnp.arange(self.config.first, self.num_actions)]).astype(jnp.int32)

    @property
    def num_logits(self) -> int:
        return self.num_compact

    def gather_logits(
        self, state: State, logits: Float32[Array, "num_compact"], actions: Int32[Array, "k"]
    ) -> Float32[Array, "k"]:
        """By the entries of ``compact_mask``: an observation shows places relative to the figure, not which cells they are."""
        cell, third = actions // self.config.numbers, actions % self.config.numbers
        slot = jnp.argmax(state.table.cells.astype(jnp.int32)[None] == cell[:, None], axis=1).astype(jnp.int32)
        other = actions - self.config.first + self.config.slots * self.config.numbers
        entry = jnp.where(actions < self.config.first, slot * self.config.numbers + third, other)
        return jnp.take(logits, entry, mode="clip")

    def legal_list(self, state: State, size: int) -> Int32[Array, "size"]:
        """Legal actions, then -1. More than 64 were never seen at once with 56 tiles, nor more than 96 with 84."""
        (entries,) = jnp.nonzero(self.compact_mask(state), size=size, fill_value=self.num_compact)
        return jnp.take(self.compact_actions(state), entries, mode="fill", fill_value=-1)

    def sample_actions(self, state: State, key: PRNGKeyArray, k: int) -> Int32[Array, "k"]:
        return rules.several(self.config, state, rules.legal_words(self.config, state), random_words(key, 1)[0], k)

    def heuristic_logits(self, state: State, actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
        """As the strategy ``block`` has it."""
        return policies.heuristic_logits(self.config, state, actions)

    def heuristic_value(self, state: State) -> Float32[Array, "players"]:
        """By the points."""
        return jax.nn.softmax(state.scores.astype(jnp.float32) / _SHARE_POINTS)

    def current_player(self, state: State) -> Int32[Array, ""]:
        return state.current_player

    def is_terminal(self, state: State) -> Bool[Array, ""]:
        return rules.is_over(self.config, state)

    def is_truncated(self, state: State) -> Bool[Array, ""]:
        """Whether a game to a target has ended by ``max_rounds``."""
        short = (self.config.game == "target") & (jnp.max(state.scores) < self.config.target)
        return self.is_terminal(state) & short

    def scores(self, state: State) -> Int32[Array, "players"]:
        return state.scores

    def returns(self, state: State) -> Float32[Array, "players"]:
        best = (state.scores == jnp.max(state.scores)) & self.is_terminal(state)
        return best.astype(jnp.float32) / jnp.maximum(jnp.sum(best, dtype=jnp.int32), 1).astype(jnp.float32)

    def observe(self, state: State, player: Int32[Array, ""]) -> Float32[Array, "size"]:
        """The blocks of ``observation.layout``; ``split`` takes them apart."""
        return observation.observe(self.config, state, jnp.asarray(player, jnp.int32))

    def split(self, observed: Float32[Array, "*batch size"]) -> dict[str, Float32[Array, "*batch rows columns"]]:
        """The blocks of an observation, by name."""
        return observation.split(self.config, observed)

    def board_of(self, state: State) -> Int8[Array, "4 rows columns"]:
        """Tile ids, and the numbers at the left, middle and right corner, cell by cell on the torus; -1 where nothing lies."""
        return observation.board_of(self.config, state)

    def determinize(self, state: State, player: Int32[Array, ""], key: PRNGKeyArray) -> State:
        """The state with the tiles that ``player`` does not see dealt anew to the other trays, of their sizes, and the pile."""
        return rules.determinize(self.config, state, jnp.asarray(player, jnp.int32), key)

    def host(self, state: State) -> Position:
        """The same position for Python; on the host."""
        state = jax.device_get(state)
        every = self.config.tile_list
        order = sorted((int(at), tile) for at, tile in zip(state.order, every, strict=True) if at >= state.drawn)
        lying = zip(every, state.table.turned.tolist(), state.table.lying.tolist(), strict=True)
        wrapped = [(tile, orientation, cell) for tile, orientation, cell in lying if cell >= 0]
        taken = [cell for *_, cell in wrapped]
        return Position(
            config=self.config,
            placements=tuple((tile, turned, unwrapped(self.config, cell, taken)) for tile, turned, cell in wrapped),
            trays=tuple(
                tuple(tile for i, tile in enumerate(every) if tray[i // WORD_BITS] >> (i % WORD_BITS) & 1)
                for tray in state.trays.tolist()
            ),
            pile=tuple(tile for _, tile in order),
            scores=tuple(state.scores.tolist()),
            player=int(state.current_player),
            draws=int(state.draws),
            over=bool(self.is_terminal(state)),
        )

    def action_of(self, what: Placement | str, state: State) -> int:
        """The action of a placement, ``("125", "CAB", (2, -1))``, or of ``"draw"`` or ``"pass"``; on the host.

        All orientations in which a triple looks alike are accepted. The first tile of a round lies on (0, 0) as ABC. Raises
        ``IllegalActionError``, a ``ValueError``, where that is illegal, and says what rule it is against.
        """
        return self.host(state).action(what)

    def describe(self, state: State, action: int) -> Placement | str:
        """A legal action as a placement, ``"draw"`` or ``"pass"``; on the host. Raises ``ValueError`` where it is illegal."""
        self._check(state, action)
        return self.host(state).describe(int(action))

    def action_name(self, action: int, state: State) -> str:
        """A legal action for people: ``125-CAB@2,-1``, ``draw`` or ``pass``. Raises ``ValueError`` where it is illegal."""
        what = self.describe(state, action)
        return what if isinstance(what, str) else f"{what[0]}-{what[1]}@{what[2][0]},{what[2][1]}"

    def action_of_name(self, name: str, state: State) -> int:
        """The inverse of ``action_name``. Raises ``ValueError`` as ``action_of`` does, or where it is no name."""
        tile, dash, rest = name.partition("-")
        orientation, at, place = rest.partition("@")
        if not dash and not at:
            return self.action_of(name, state)
        try:
            column, row = (int(number) for number in place.split(","))
        except ValueError:
            raise ValueError(f"{name!r} is no action; actions look like 125-CAB@2,-1, draw and pass") from None
        return self.action_of((tile, orientation, (column, row)), state)

    def text(self, state: State, color: bool = False) -> str:
        return self.host(state).text(color)

    def svg(self, state: State) -> str:
        position = self.host(state)
        shapes = [
            (outline(cell), _COLORS[len(set(tile))], tuple(map(str, corners(tile, orientation))))
            for tile, orientation, cell in position.placements
        ]
        legend = [(_COLORS[3], "three different numbers"), (_COLORS[2], "two alike"), (_COLORS[1], "three alike")]
        lines = [f"player {player}: {score} points" for player, score in enumerate(position.scores, 1)]
        return polygons(shapes, legend, lines)

    def deal(self, state: State) -> Any:
        """The tiles in the order in which they are dealt and drawn, who starts, and the words that decide later rounds."""
        order = np.argsort(np.asarray(state.order))
        tiles = [digits(self.config.tile_list[tile]) for tile in order]
        return {"tiles": tiles, "starter": int(state.starter), "seed": np.asarray(state.seed).tolist()}

    def init_from_deal(self, deal: Any) -> State:
        fault = ValueError(
            f"a deal is tiles, all {self.config.tiles} in the order in which they are dealt and drawn; starter, a player from"
            " 0; and seed, two words of 32 bits"
        )
        if not isinstance(deal, dict) or not all(isinstance(deal.get(name), list) for name in ("tiles", "seed")):
            raise fault
        tiles, starter, seed = deal["tiles"], deal.get("starter"), deal["seed"]
        words = len(seed) == 2 and all(type(word) is int and 0 <= word < 1 << WORD_BITS for word in seed)
        if type(starter) is not int or not 0 <= starter < self.num_players or not words:
            raise fault
        order = [tile_id(parse_tile(str(tile))) for tile in tiles]
        if sorted(order) != list(range(self.config.tiles)):
            raise fault
        state: State = _start(
            self.config,
            np.zeros(self.num_players, np.int32),
            np.int32(0),
            np.array(seed, np.uint32),
            np.argsort(order).astype(np.int8),
            2 * (np.arange(self.num_players) == starter).astype(np.uint32),
            np.ones(self.num_players, np.bool_),
        )
        if int(state.starter) != starter:
            raise ValueError(f"player {starter + 1} does not hold the highest tile of this deal, and so does not start")
        return state

    def policies(self) -> dict[str, Policy]:
        """``random`` among all legal actions, and the players of ``strategies``."""
        return {**super().policies(), **policies.policies(self.config)}

    def _check(self, state: State, action: int) -> None:
        if not self.is_legal(state, jnp.int32(action)):
            raise ValueError(f"action {action} is not legal here")


_start = jax.jit(rules.start, static_argnums=0)


def _make(
    players: int = 2,
    tiles: int = 56,
    start: Start = "random",
    game: Length = "single",
    target: int = 400,
    hex_scores: tuple[int, int, int] = HEX_SCORES,
    max_rounds: int = 20,
    tray: int | None = None,
) -> TriominosGame:
    """Triangular tiles with three numbers, hidden trays and a pile to draw from."""
    return TriominosGame(Config(players, tiles, start, game, target, hex_scores, max_rounds, tray))


GAMES = {"triominos": _make}
"""What makes the game, by name."""
