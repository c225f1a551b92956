"""The polyomino placement games as a ``Game``: Tilewe, the Duos, and the classic games."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, PRNGKeyArray, UInt8, UInt32
from numpy.typing import NDArray

from tilewe_jax.bits import popcount, unpack_words
from tilewe_jax.game import Action, ActionLike, Game, Policy, as_action, check_state
from tilewe_jax.games.polyomino import heuristics, host_symmetry, notation, observation, rules, symmetry
from tilewe_jax.games.polyomino.boards import neighbours
from tilewe_jax.games.polyomino.config import VARIANTS, VERSION, Config, options_of
from tilewe_jax.games.polyomino.encoding import Encoding, encode
from tilewe_jax.games.polyomino.endings import PolyominoEndings
from tilewe_jax.games.polyomino.host_draws import host_draws
from tilewe_jax.games.polyomino.pieces import ORIENTATIONS, PIECE_NAMES, Cell
from tilewe_jax.games.polyomino.policies import policies
from tilewe_jax.games.polyomino.position import PolyominoPosition, position_of_state
from tilewe_jax.games.polyomino.rules import State
from tilewe_jax.games.polyomino.setup import position_format
from tilewe_jax.host import HostDraws, PositionFormat
from tilewe_jax.lanes import random_words, rule_per_lane

T = TypeVar("T")


@dataclass(frozen=True)
class PolyominoGame(Game[State]):
    """A polyomino placement game with the rules of ``config``.

    Actions are placements, ``(orientation * size + y) * size + x`` with (x, y) the anchor, which is the bottom left of the
    bounding box of the piece, and (0, 0) the bottom left of the board. With ``voluntary_pass``, ``num_actions - 1`` passes.

    >>> import jax, tilewe_jax
    >>> game = tilewe_jax.make("tilewe", players=2, size=5, pieces=["O1", "I2", "L3"])
    >>> state = game.init(jax.random.key(0))
    >>> action = game.action_of_name("L3n-a1a1")
    >>> game.cells_of(action)
    ((0, 0), (1, 0), (0, 1))
    >>> bool(game.is_legal(state, action)), int(game.num_legal(state))
    (True, 24)
    >>> position = game.host(state).after(action)
    >>> print(position.text())
     5 . . . . .
     4 . . . . .
     3 . . . . .
     2 B . . . .
     1 B B . . .
       a b c d e
    points and pieces left:
    B   3 O1 I2
    Y   0 O1 I2 L3
    yellow to move
    >>> position.explain(game.action_of_name("I2e-a1b1"))
    'it covers a cell that is taken'
    """

    config: Config

    version = VERSION

    @property
    def id(self) -> str:
        return self.config.name

    @property
    def options(self) -> dict[str, Any]:
        return options_of(self.config)

    @property
    def num_players(self) -> int:
        return self.config.players

    @property
    def num_actions(self) -> int:
        return self.config.num_actions

    @property
    def max_steps(self) -> int:
        return self.config.max_steps

    # ---- Rules

    @property
    def fixed_start(self) -> bool:
        return True

    @cached_property
    def _initial(self) -> dict[str, np.ndarray]:
        return rules.initial(self.config)

    def init(self, key: PRNGKeyArray) -> State:
        del key
        return State(**{name: jnp.asarray(value) for name, value in self._initial.items()})

    @property
    def positions(self) -> PositionFormat:
        return position_format(self.config)

    def state_of(self, position: PolyominoPosition) -> State:
        if position.config != self.config:
            raise ValueError(f"the position is of {position.config.name} with other options")
        return State(**jax.device_put(rules.fields_of(position.position)))

    @property
    def host_draws(self) -> HostDraws | None:
        return host_draws(self.config)

    def apply(self, state: State, action: Action) -> State:
        check_state(self, state)
        return rule_per_lane(rules.apply, self.config)(state, as_action(action))

    def apply_deferred(self, state: State, action: Action) -> State:
        check_state(self, state)
        return rule_per_lane(rules.apply_deferred, self.config)(state, as_action(action))

    def apply_in_playout(self, state: State, action: Action) -> State:
        check_state(self, state)
        return rule_per_lane(rules.apply_in_playout, self.config)(state, as_action(action))

    def resolve_passes(self, state: State) -> State:
        return rule_per_lane(rules.resolve_passes, self.config)(state)

    def is_legal(self, state: State, action: ActionLike) -> Bool[Array, ""]:
        check_state(self, state)
        return rule_per_lane(rules.legal, self.config)(state, as_action(action))

    def legal_action_mask(self, state: State) -> Bool[Array, "num_actions"]:
        check_state(self, state)
        anchors = jax.vmap(lambda words: unpack_words(words, self.config.cells))(self.placements(state)).ravel()
        if not self.config.voluntary_pass:
            return anchors
        return jnp.append(anchors, ~self.is_terminal(state))

    def num_legal(self, state: State) -> Int32[Array, ""]:
        placements = jnp.sum(state.legal_counts, dtype=jnp.int32)
        return placements + (self.config.voluntary_pass & (placements > 0)).astype(jnp.int32)

    def sample_action(self, state: State, key: PRNGKeyArray) -> Action:
        return rule_per_lane(rules.sample, self.config)(state, random_words(key, 1)[0])

    def playout_action(self, state: State, key: PRNGKeyArray) -> Action:
        """Draw a placement of a large piece, see ``rules.sample_large``: cheap, and about as good as the heuristics."""
        return rule_per_lane(rules.sample_large, self.config)(state, random_words(key, 3))

    def sample_actions(self, state: State, key: PRNGKeyArray, k: int) -> Int32[Array, "k"]:
        return rule_per_lane(rules.sample_several, self.config, count=k)(state, random_words(key, 1)[0])

    def nth_legal(self, state: State, ranks: Int32[Array, "k"]) -> Int32[Array, "k"]:
        return rule_per_lane(rules.nth_legal, self.config)(state, ranks)

    def current_player(self, state: State) -> Int32[Array, ""]:
        return self.config.owner(state.current_color)

    def is_terminal(self, state: State) -> Bool[Array, ""]:
        return jnp.all(state.out)

    def scores(self, state: State) -> Int32[Array, "players"]:
        """Points by seat: cells placed, plus the bonuses of the variant."""
        return rules.by_player(self.config, rules.points(self.config, state.hands, state.monomino_last))

    def returns(self, state: State) -> Float32[Array, "players"]:
        scores = self.scores(state)
        if self.num_players == 1:
            outcome = scores.astype(jnp.float32) / self.config.max_score
        else:
            best = scores == jnp.max(scores)
            outcome = best.astype(jnp.float32) / jnp.sum(best, dtype=jnp.int32).astype(jnp.float32)
        return jnp.where(self.is_terminal(state), outcome, 0.0)

    def observe(self, state: State, player: Int32[Array, ""]) -> Float32[Array, "channels size size"]:
        """Return the binary planes of ``channel_names``, from the seat of ``player``; see ``observation``."""
        check_state(self, state)
        return observation.observe(self.config, state, jnp.asarray(player, jnp.int32))

    # ---- Capabilities

    def heuristic_logits(self, state: State, actions: Int32[Array, "k"]) -> Float32[Array, "k"]:
        """Return weighted sums of ``heuristics.Features``."""
        return rule_per_lane(heuristics.heuristic_logits, self.config)(state, actions)

    def heuristic_features(self, state: State, actions: Int32[Array, "k"]) -> Float32[Array, "k features"]:
        """Return the features in which ``heuristic_logits`` of placements are linear, see ``heuristics``."""
        return rule_per_lane(heuristics.heuristic_features, self.config)(state, actions)

    @property
    def heuristic_weights(self) -> dict[str, tuple[float, ...]]:
        """Weights of ``heuristic_features`` by name: the value at the start of a game, and its change until the end."""
        return dict(zip(heuristics.WEIGHT_NAMES, map(tuple, heuristics.weights(self.config).T.tolist()), strict=True))

    def heuristic_value(self, state: State) -> Float32[Array, "players"]:
        """Return the softmax of the scores, see ``heuristics``."""
        return heuristics.heuristic_value(self.scores(state))

    def policies(self) -> dict[str, Policy]:
        """Return the sample engines of the package ``tilewe`` by name, see ``policies``."""
        return policies(self.config)

    @property
    def quick_policy(self) -> str:
        return "most_open_corners"

    @property
    def num_symmetries(self) -> int:
        """Number of symmetries of the board that preserve the start cells of every colour, see ``symmetry``."""
        return len(host_symmetry.symmetries(self.config))

    def transform(self, state: State, index: Int32[Array, ""] | int) -> State:
        occupied = symmetry.transform_boards(self.config, state.occupied, jnp.asarray(index, jnp.int32))
        counts = rule_per_lane(rules.legal_counts, self.config)(occupied, state.hands, state.current_color, state.out)
        return replace(state, occupied=occupied, legal_counts=counts)

    @property
    def action_symmetries(self) -> NDArray[np.int32]:
        return symmetry.action_table(self.config)

    def endings(self, max_moves: int) -> PolyominoEndings:
        return PolyominoEndings(self.config, max_moves)

    def host(self, state: State) -> PolyominoPosition:
        check_state(self, state)
        return PolyominoPosition(position_of_state(self.config, state))

    def text(self, state: State, color: bool = False) -> str:
        return self.host(state).text(color)

    def svg(self, state: State) -> str:
        return self.host(state).svg()

    def characters(self, state: State) -> UInt8[Array, "cells"]:
        """Return the digit of the colour of each cell, or ".", as in views."""
        codes = jnp.full(self.config.cells, ord("."), jnp.uint8)
        for color in range(self.config.colors):
            codes = jnp.where(unpack_words(state.occupied[color], self.config.cells), np.uint8(ord("0") + color), codes)
        return codes

    def action_name(self, action: int, state: State | None = None) -> str:
        """Return the canonical name of an action, like ``W5n-a1c3``, on the host; raises as ``action_names``."""
        return self.action_names(action)[0]

    # ---- Beyond the contract, on the device

    def encode(self, state: State) -> Encoding:
        """Encode the position for a small network, from the perspective of its mover; see ``encoding``."""
        return rule_per_lane(encode, self.config)(state)

    def ownership(self, state: State) -> Int32[Array, "cells"]:
        """Return the seat of the player who has covered each cell, ``y * size + x``; -1 for an empty cell."""
        covered = observation.unpack_boards(self.config, state.occupied).reshape(self.config.colors, -1)
        seats = jnp.arange(self.config.colors, dtype=jnp.int32)[:, None] % self.num_players
        return jnp.max(jnp.where(covered, seats, -1), axis=0)

    @property
    def channel_names(self) -> tuple[str, ...]:
        """Names of the planes of ``observe``."""
        return observation.channel_names(self.config)

    def placements(self, state: State) -> UInt32[Array, "orientations words"]:
        """Return the anchors of the legal placements of each of the 91 orientations, packed: bit ``y * size + x``."""
        return rule_per_lane(rules.placements, self.config)(state)

    def legal_list(self, state: State, size: int) -> Int32[Array, "size"]:
        """Return the lowest ``size`` legal actions, ascending, padded with -1."""
        return jnp.flatnonzero(self.legal_action_mask(state), size=size, fill_value=-1).astype(jnp.int32)

    def void_tiles(self, state: State, color: int | Int32[Array, ""]) -> Int32[Array, ""]:
        """Count the empty cells that share an edge with a cell of ``color`` (a statistic of the Duo visualizer)."""
        edges, _ = neighbours(self.config, state.occupied[color][:, None])
        is_edge = unpack_words(edges[:, 0], self.config.cells)
        is_taken = unpack_words(jnp.bitwise_or.reduce(state.occupied, axis=0), self.config.cells)
        return jnp.sum(is_edge & ~is_taken, dtype=jnp.int32)

    def empty_tiles(self, state: State) -> Int32[Array, ""]:
        """Count the empty cells."""
        return self.config.cells - jnp.sum(popcount(state.occupied), dtype=jnp.int32)

    # ---- Beyond the contract, on the host

    def remaining_pieces(self, state: State, color: int) -> list[str]:
        """Return the names of the pieces that ``color`` has not placed."""
        hand = int(state.hands[color])
        return [name for piece, name in enumerate(PIECE_NAMES) if hand >> piece & 1]

    def action_of(self, cells: Iterable[Cell]) -> int:
        """Return the placement that covers these (x, y) cells. Raises ``ValueError`` if they are not a piece on the board."""
        return notation.action_of(self.config, cells)

    def cells_of(self, action: int) -> tuple[Cell, ...]:
        """Return the (x, y) cells of a placement, row by row from the bottom. Raises ``ValueError`` for other actions."""
        return notation.cells_of(self.config, action)

    def piece_of(self, action: int) -> str:
        """Return the name of the piece of a placement. Raises ``ValueError`` for other actions."""
        return PIECE_NAMES[ORIENTATIONS[notation.split_action(self.config, action)[0]].piece]

    def action_names(self, action: int) -> tuple[str, ...]:
        """Return the names of an action (see ``notation``), one for each contact of the piece, the canonical name first.

        Raises ``ValueError`` for a number that is not an action, and for a piece that extends beyond the board.
        """
        return notation.action_names(self.config, action)

    def action_of_name(self, name: str) -> int:
        """Return the action of a name, of any rotation with the same cells and any cell of the piece. Raises ``ValueError``."""
        return notation.action_of_name(self.config, name)


def _factory(variant: Callable[..., Config]) -> Callable[..., PolyominoGame]:
    @wraps(variant)
    def make(**options: Any) -> PolyominoGame:
        return PolyominoGame(variant(**options))

    return make


GAMES = {name: _factory(variant) for name, variant in VARIANTS.items()}
"""The factory of each variant, with the options and the documentation of the variant."""
