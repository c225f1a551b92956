"""Connect Four as a custom game: rules, registration, conformance, search, training.

Run it with ``python -m experiments.examples.custom_game``. In a package, an entry point registers the game for everybody who
installs the package::

    [project.entry-points."tilewe_jax.games"]
    connect_four = "my_package:ConnectFour"

Without an entry point, the command line accepts the factory::

    tilewe-jax train --set game.id=experiments.examples.custom_game:ConnectFour --out runs/connect_four
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int8, Int32, PRNGKeyArray

import tilewe_jax
from tilewe_jax import conformance
from tilewe_jax.game import Action
from tilewe_jax.search import playout_evaluator, puct_policy

EMPTY = -1


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """A position of Connect Four."""

    cells: Int8[Array, "rows columns"]
    """The player of the disc on each cell, with row 0 at the bottom; -1 for an empty cell."""
    current_player: Int32[Array, ""]
    """The player to move; player 0 moves first."""


# 1. The rules, as pure functions of one position. A frozen dataclass is hashable, and its fields are the options of the game.
@dataclass(frozen=True)
class ConnectFour(tilewe_jax.Game[State]):
    """Four discs in a row; a disc falls to the lowest free cell of its column."""

    rows: int = 6
    columns: int = 7

    id = "connect_four"
    version = 1
    num_players = 2
    fixed_start = True

    @property
    def num_actions(self) -> int:
        """One action per column."""
        return self.columns

    @property
    def max_steps(self) -> int:
        """Number of cells; the board is full after this many actions."""
        return self.rows * self.columns

    @property
    def options(self) -> dict[str, Any]:
        """The options that differ from the defaults; records and weights store them."""
        return {name: value for name, value in vars(self).items() if value != getattr(type(self), name)}

    def init(self, key: PRNGKeyArray) -> State:
        """Return an empty board."""
        del key
        return State(jnp.full((self.rows, self.columns), EMPTY, jnp.int8), jnp.int32(0))

    def apply(self, state: State, action: Action) -> State:
        """Drop a disc into a column; -1 leaves the state unchanged."""
        row = jnp.sum(state.cells[:, action] != EMPTY)
        column = jnp.where(action >= 0, action, self.columns)  # outside of the board, so that the update is dropped
        disc = state.current_player.astype(jnp.int8)
        player = jnp.where(action >= 0, 1 - state.current_player, state.current_player)
        return State(state.cells.at[row, column].set(disc, mode="drop"), player)

    def legal_action_mask(self, state: State) -> Bool[Array, "columns"]:
        """Return the columns that are not full; no column after a win."""
        return (state.cells[-1] == EMPTY) & ~jnp.any(self._won(state))

    def current_player(self, state: State) -> Int32[Array, ""]:
        """Return the player to move."""
        return state.current_player

    def is_terminal(self, state: State) -> Bool[Array, ""]:
        """Return whether a player has won or the board is full."""
        return ~jnp.any(self.legal_action_mask(state))

    def returns(self, state: State) -> Float32[Array, "2"]:
        """Return 1 for the winner and 0 for the loser, or 0.5 each for a draw."""
        won = self._won(state)
        outcome = jnp.where(jnp.any(won), won.astype(jnp.float32), 0.5)
        return jnp.where(self.is_terminal(state), outcome, 0.0)

    def observe(self, state: State, player: Int32[Array, ""]) -> Float32[Array, "2 rows columns"]:
        """Return the planes of the player's discs and of the opponent's discs."""
        own = player.astype(jnp.int8)
        return jnp.stack([state.cells == own, state.cells == 1 - own]).astype(jnp.float32)

    def _won(self, state: State) -> Bool[Array, "2"]:
        """Return for each player whether four discs are in a row."""
        discs = state.cells[None] == jnp.arange(2, dtype=jnp.int8)[:, None, None]
        # Pad three cells, so that lines do not leave the array.
        padded = jnp.pad(discs, ((0, 0), (0, 3), (3, 3)))
        lines = []
        for up, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
            cells = [padded[:, i * up : i * up + self.rows, 3 + i * right : 3 + i * right + self.columns] for i in range(4)]
            lines.append(jnp.any(cells[0] & cells[1] & cells[2] & cells[3], axis=(1, 2)))
        return jnp.any(jnp.stack(lines), axis=0)

    # Optional: a text for people.
    def text(self, state: State, color: bool = False) -> str:
        """Return the board as a text."""
        del color
        return "\n".join(" ".join(".XO"[cell + 1] for cell in row) for row in np.asarray(state.cells)[::-1])


def main() -> None:
    """Check the game, play random games, and let a search play against random moves."""
    # 2. Registration for ``make``, records, matches, search, training and the command line.
    tilewe_jax.register("connect_four", ConnectFour)
    game = tilewe_jax.make("connect_four")

    # 3. Conformance to the contract of ``Game``.
    conformance.check(game)
    print("connect_four conforms to the contract of Game")

    # 4. A thousand random games in one compiled call.
    games = jax.jit(lambda key: tilewe_jax.rollout(game, key, 1000))(jax.random.key(0))
    print(f"1,000 random games: the first player takes {float(games.returns[:, 0].mean()):.0%} of the wins")

    # 5. Search: in 32 parallel games, the first player searches and the second moves at random.
    evaluator = playout_evaluator(game)

    def choose(state: State, key: PRNGKeyArray) -> Action:
        search_key, random_key = jax.random.split(key)
        searched = puct_policy(game, evaluator, state, search_key, num_simulations=32, num_candidates=game.num_actions).action
        return jnp.where(game.current_player(state) == 0, searched, game.sample_action(state, random_key))

    games = jax.jit(lambda key: tilewe_jax.rollout(game, key, 32, choose))(jax.random.key(1))
    print(f"32 games of a search against random moves: the search takes {float(games.returns[:, 0].mean()):.0%} of the wins")
    print(game.text(jax.tree.map(lambda leaf: leaf[0], games.state)))


if __name__ == "__main__":
    main()
