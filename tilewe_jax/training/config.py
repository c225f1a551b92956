"""All settings of a training run, as nested frozen dataclasses.

The docstrings of the fields are the help texts, and ``setting`` gives their ranges. ``tilewe_jax.settings`` checks, parses,
lists and saves them. Settings of searches are dataclasses of ``search``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tilewe_jax import settings
from tilewe_jax.agents.base import names_code
from tilewe_jax.arena.ratings import Sprt
from tilewe_jax.game import Game, num_owned_cells
from tilewe_jax.networks.registry import registered_by
from tilewe_jax.registry import game_options, make_game
from tilewe_jax.search import GumbelRule, PuctRule, SearchSettings
from tilewe_jax.search.solve import check_solvable
from tilewe_jax.settings import setting
from tilewe_jax.utils.files import read_json

CONFIG = "config.json"
"""File with the settings of a run, in its folder."""


@dataclass(frozen=True)
class GameConfig:
    """The game."""

    id: str = setting("santorini")
    """Id of the game, see ``tilewe-jax games``, or ``module:factory`` of a custom game."""
    options: Mapping[str, Any] | tuple[tuple[str, Any], ...] = setting((), holds="data")
    """Options of the game that differ from its defaults, a mapping; on the command line ``game.options.size=4``."""

    def __post_init__(self) -> None:
        try:
            given = dict(self.options)
        except (TypeError, ValueError):
            raise ValueError(f"options must be a JSON object, not {self.options!r}") from None
        object.__setattr__(self, "options", tuple((name, settings.frozen(value)) for name, value in given.items()))

    def make(self) -> Game[Any]:
        """Make the game. Raises ``ValueError`` for unknown games and wrong options."""
        return make_game(self.id, dict(self.options))


@dataclass(frozen=True)
class NetworkConfig:
    """The network."""

    architecture: str = setting("default")
    """Name of a registered architecture, see ``tilewe_jax.networks.register_architecture``; "default" for the architecture of
    the game; or ``module:factory``, a function of a game, a size and a key."""
    registered_by: str = setting("", may_change=True, holds="data")
    """Module or file that registered ``architecture``; empty for built-in architectures. Set automatically, and named in the
    error if the architecture is missing."""
    size: str = setting("nano")
    """Name of a size, see ``tilewe_jax.networks.SIZES``."""
    init: str = setting("", may_change=True, holds="data")
    """Initial weights: the name of shipped weights, a file, or the folder of a run, of any game whose arrays have the same
    shapes; random by default."""

    def __post_init__(self) -> None:
        module = registered_by(self.architecture) if isinstance(self.architecture, str) else None
        if module is not None:
            object.__setattr__(self, "registered_by", module)


@dataclass(frozen=True)
class SelfplayConfig:
    """Self-play."""

    num_games: int = setting(256, minimum=1)
    """Number of games played in parallel, on all devices together."""
    unroll_length: int = setting(32, minimum=1)
    """Number of moves in each game per iteration."""
    rule: Literal["gumbel", "puct"] = setting("gumbel")
    """Action selection of the search: Gumbel AlphaZero, or PUCT with Dirichlet noise."""
    search: SearchSettings = field(default=SearchSettings(num_simulations=32, candidate_pool=1024, score_weight=0.0))
    """Settings of a full search."""
    gumbel: GumbelRule = field(default=GumbelRule(gumbel_scale=1.0))
    """Settings of Gumbel action selection, for ``rule="gumbel"``."""
    puct: PuctRule = field(default=PuctRule(dirichlet_alpha=10 / 64, forced_playouts=2.0))
    """Settings of PUCT action selection, for ``rule="puct"``. AlphaZero's ``dirichlet_alpha`` is about 10 divided by the number
    of candidates."""
    fast_simulations: int = setting(0, minimum=0)
    """Number of simulations of a fast search, whose move is played but not learned (playout cap randomization, Wu 2019); 0
    makes all searches full."""
    full_search_prob: float = setting(0.25, minimum=0, maximum=1)
    """Probability of a full search if there are fast searches."""
    num_determinizations: int = setting(4, minimum=1)
    """Number of determinizations searched per move in games with hidden information; they share the simulations."""
    playout_weight: float = setting(0.0, minimum=0, maximum=1)
    """Weight of playouts in the values of the network, in self-play and evaluations; see ``search.EvaluatorSettings``."""
    playout_max_legal: int = setting(0, minimum=0)
    """Maximum number of legal actions of a position for playouts to be mixed into its value; 0 for no maximum."""
    temperature: float = setting(1.0, positive=True)
    """Temperature of the improved policy from which the first moves of a game are sampled."""
    temperature_plies: int = setting(8, minimum=0)
    """Number of plies whose move is sampled from the policy; later plies play the action that the search chooses."""
    resign_threshold: float = setting(0.0, minimum=0, maximum=1)
    """Value of a seat at which the others resign; every tenth game is played out to count false resignations. 0 turns
    resignation off."""
    opponent: str = setting("", holds="agents")
    """Agent that plays some of the games against the learner; it must decide on the device, and its searches do not reuse
    trees. The learner plays one random seat, this agent all others. Only values are learned from its moves."""
    opponent_fraction: float = setting(0.0, minimum=0, maximum=1)
    """Fraction of the games that are played against ``opponent``; the learner plays all seats of the others."""
    random_opening: int = setting(0, minimum=0)
    """Maximum number of random actions at the start of half of the games, at least 1, which are not recorded; 0 for none."""
    warmup_iterations: int = setting(0, minimum=0)
    """Number of first iterations whose games are played without the network, by ``warmup_policy`` or by searches with
    playouts."""
    warmup_policy: str = setting("")
    """Policy that plays the warm-up without search, and that the network imitates: a policy of the game, or "heuristic", which
    samples from ``Game.heuristic_logits``. By default, searches with playouts play."""
    warmup_samples: int = setting(0, minimum=0)
    """Number of random actions from which a move in playouts is the best, in the warm-up and later; 0 plays
    ``Game.playout_action``, see ``search.playout_evaluator``."""


@dataclass(frozen=True)
class ReplayConfig:
    """The replay buffer."""

    replay_size: int = setting(512, minimum=1)
    """Capacity of the replay buffer, in positions per parallel game."""
    min_replay_size: int = setting(64, minimum=1, may_change=True)
    """Number of positions per parallel game at which learning starts."""
    replay_ratio: float = setting(4.0, positive=True, may_change=True)
    """Mean number of times that each position is learned."""
    surprise_fraction: float = setting(0.5, minimum=0, maximum=1, may_change=True)
    """Fraction of the positions that are sampled in proportion to the change of the policy by the search (policy surprise
    weighting, Wu 2019); the others are sampled uniformly."""
    records: str = setting("", may_change=True, holds="data")
    """File or folder of recorded games, such as the games of ``ladder`` or games between people, whose positions are learned in
    addition. Only values are learned from them."""
    records_fraction: float = setting(0.1, minimum=0, maximum=0.9, may_change=True)
    """Fraction of the positions of a batch that are sampled from ``records``."""
    solve_nodes: int = setting(0, minimum=0, may_change=True)
    """Maximum number of positions that a solver visits to prove the outcome of a position late in a game of self-play. The
    positions of a game are solved backwards from its end until one is not proven. The exact outcome replaces the outcome of the
    game in the targets of a solved position and of the unsolved positions before it. 0 solves nothing. Only for two players
    without hidden information."""


@dataclass(frozen=True)
class LossConfig:
    """The loss."""

    outcome_loss_weight: float = setting(1.0, minimum=0, may_change=True)
    """Weight of the outcome loss; the policy loss has weight 1."""
    score_loss_weight: float = setting(0.25, minimum=0, may_change=True)
    """Weight of the loss of the final ``Game.heuristic_value``; the policy loss has weight 1."""
    root_value_weight: float = setting(0.25, minimum=0, maximum=1, may_change=True)
    """Weight of the value of the search in the outcome target; the outcome of the game has the rest."""
    td_lambda: float = setting(1.0, minimum=0, maximum=1, may_change=True)
    """Lambda of the TD(lambda) targets of the outcome. 1 uses the final outcome only; smaller values mix in the values of the
    searches of later moves, with weights that decay by lambda per move."""
    ownership_loss_weight: float = setting(0.0, minimum=0)
    """Weight of the loss of the final ``Game.ownership``, averaged over cells (Wu 2019); the policy loss has weight 1. The
    auxiliary head is not saved with the weights."""
    augment: bool = setting(True, may_change=True)
    """Whether positions are transformed by a random symmetry of the game."""


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW with a linear warm-up, and an exponential moving average of the weights."""

    batch_size: int = setting(256, minimum=1)
    """Number of positions per optimizer step, on all devices together."""
    learning_rate: float = setting(2e-3, positive=True, may_change=True)
    """Learning rate after the warm-up."""
    warmup_steps: int = setting(100, minimum=1, may_change=True)
    """Number of steps in which the learning rate rises linearly."""
    decay_steps: int = setting(0, minimum=0, may_change=True)
    """Number of steps after the warm-up in which the learning rate falls to a twentieth along a cosine; 0 keeps it constant."""
    weight_decay: float = setting(1e-4, minimum=0, may_change=True)
    """Weight decay of AdamW, except for biases and gains."""
    max_grad_norm: float = setting(1.0, positive=True, may_change=True)
    """Global norm to which larger gradients are clipped."""
    ema_decay: float = setting(0.995, minimum=0, maximum=1, may_change=True)
    """Decay per step of the exponential moving average of the weights, which is used for self-play, evaluated and saved."""


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluations during the run."""

    eval_every: int = setting(50, minimum=1, may_change=True)
    """Number of iterations between two evaluations."""
    eval_games: int = setting(128, minimum=1, may_change=True)
    """Number of games of an evaluation against each opponent."""
    eval_simulations: int = setting(32, minimum=1, may_change=True)
    """Number of simulations of the evaluated agent."""
    eval_opening: int = setting(2, minimum=0, may_change=True)
    """Number of random moves at the start of these games, so that deterministic agents do not repeat games."""
    opponents: tuple[str, ...] = setting(("random",), may_change=True, holds="agents")
    """Opponents: agents of the arena, or "last" for the agent of the previous evaluation."""
    value_games: str = setting("", may_change=True, holds="data")
    """File or folder of finished games between others, such as games of other programs, on which each evaluation tests the
    values of the network, as ``tilewe-jax value-test`` does. They should not be learned from. Of more than 20,000 positions, a
    random sample is tested."""
    gate: tuple[float, float] | None = setting(None)
    """Two Elo differences: new weights are used for self-play only if a sequential test (SPRT) accepts the second one rather
    than the first. Without a gate the newest weights play."""


@dataclass(frozen=True)
class CheckpointConfig:
    """Checkpoints, from which a run can be resumed."""

    checkpoint_every: int = setting(20, minimum=1, may_change=True)
    """Number of iterations between two checkpoints."""
    checkpoint_minutes: float = setting(10.0, minimum=0, may_change=True)
    """Maximum minutes of wall-clock time between two checkpoints; 0 sets no maximum. The checkpoint of iteration 0 is written
    before self-play starts."""
    num_kept: int = setting(2, minimum=1, may_change=True)
    """Number of checkpoints to keep; older ones are deleted."""
    slim: bool = setting(False, may_change=True)
    """Whether checkpoints leave out the replay buffer and the games in progress, so that they are small enough to copy to
    another machine. A run resumed from a slim checkpoint starts new games, and learns once the buffer holds ``min_replay_size``
    positions per game."""


@dataclass(frozen=True)
class TrainConfig:
    """Settings of a training run. Raises ``ValueError``, which names the setting, for values out of range."""

    game: GameConfig = field(default=GameConfig())
    """The game."""
    network: NetworkConfig = field(default=NetworkConfig())
    """The network."""
    selfplay: SelfplayConfig = field(default=SelfplayConfig())
    """Self-play."""
    replay: ReplayConfig = field(default=ReplayConfig())
    """The replay buffer."""
    loss: LossConfig = field(default=LossConfig())
    """The loss."""
    optimizer: OptimizerConfig = field(default=OptimizerConfig())
    """The optimizer."""
    evaluation: EvaluationConfig = field(default=EvaluationConfig())
    """Evaluations during the run."""
    checkpoint: CheckpointConfig = field(default=CheckpointConfig())
    """Checkpoints, from which a run can be resumed."""
    tensorboard: bool = setting(False, may_change=True)
    """Whether metrics are also written as TensorBoard events; needs the extra ``tensorboard``."""
    wandb: str = setting("", may_change=True, holds="data")
    """Project of Weights & Biases to which metrics are also sent; needs the extra ``wandb``."""
    iterations: int = setting(1000, minimum=1, may_change=True)
    """Number of iterations of self-play and learning."""
    max_minutes: float = setting(0.0, minimum=0, may_change=True)
    """Limit of the wall-clock time of the run in minutes, including compilation, evaluations and checkpoints, over all commands
    that resume it; 0 for no limit. No iteration starts that is expected to overrun the limit. The first one of a command always
    runs, because it compiles."""
    seed: int = setting(0, minimum=-(2**31), maximum=2**31 - 1)
    """Seed of all random numbers of the run."""

    def __post_init__(self) -> None:
        settings.validate(self)
        replay, unroll = self.replay, self.selfplay.unroll_length
        if replay.replay_size % unroll:
            raise ValueError(
                f"replay.replay_size must be a multiple of selfplay.unroll_length, {unroll}, got {replay.replay_size}"
            )
        if replay.min_replay_size > replay.replay_size:
            raise ValueError(
                f"replay.min_replay_size must be at most replay.replay_size, {replay.replay_size}, got {replay.min_replay_size}"
            )
        if bool(self.selfplay.opponent) != (self.selfplay.opponent_fraction > 0):
            raise ValueError(
                "selfplay.opponent needs selfplay.opponent_fraction above 0, and the other way round, got"
                f" {self.selfplay.opponent!r} and {self.selfplay.opponent_fraction}"
            )
        if self.selfplay.playout_max_legal and not self.selfplay.playout_weight:
            raise ValueError("selfplay.playout_max_legal needs selfplay.playout_weight above 0")
        if replay.solve_nodes:
            try:
                check_solvable(self.game.make())
            except ValueError as error:
                raise ValueError(f"replay.solve_nodes: {error}") from None
        if self.loss.td_lambda < 1 and self.game.make().num_players < 2:
            raise ValueError("loss.td_lambda below 1 needs a game with at least 2 players, whose outcomes sum to 1")
        if self.loss.ownership_loss_weight and not num_owned_cells(self.game.make()):
            raise ValueError(f"loss.ownership_loss_weight needs a game with Game.ownership, got {self.game.id}")
        if self.evaluation.gate is not None:
            Sprt(*self.evaluation.gate)

    @property
    def num_updates(self) -> int:
        """Number of optimizer steps per iteration."""
        selfplay = self.selfplay
        searched = selfplay.num_games * selfplay.unroll_length
        learned = searched * (selfplay.full_search_prob if selfplay.fast_simulations else 1)
        return max(1, round(learned * self.replay.replay_ratio / self.optimizer.batch_size))


def changed(config: TrainConfig, given: dict[str, str]) -> TrainConfig:
    """Return the settings with changes given as text by dotted name; ``game.options.size`` is an option of the game.

    Raises ``ValueError``, which names the setting.
    """
    prefix = "game.options."
    others = {name: text for name, text in given.items() if not name.startswith(prefix)}
    config = settings.changed(config, others, "`tilewe-jax train --list all` explains the settings")
    texts = {name.removeprefix(prefix): text for name, text in given.items() if name.startswith(prefix)}
    game = replace(config.game, options={**dict(config.game.options), **game_options(config.game.id, texts)})
    return replace(config, game=game)


def read_settings(folder: Path) -> Any:
    """Read the settings of the run in a folder as unchecked JSON. Raises ``ValueError``."""
    path = folder / CONFIG
    try:
        return read_json(path)
    except FileNotFoundError:
        raise ValueError(f"{folder} has no run: {path.name} is missing") from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def code_in_settings(content: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts in JSON settings that name code, as pairs of dotted name and text.

    A text with a colon names code, except in settings that hold agents or data; see ``holds`` of ``settings.setting``.
    """
    holds = {name: entry.metadata.get("holds", "code") for name, entry, _, _ in settings.leaves(TrainConfig())}

    def texts(value: Any, name: str, kind: str) -> Iterator[tuple[str, str]]:
        kind = holds.get(name, kind)
        if isinstance(value, dict):
            for key, item in value.items():
                yield from texts(item, f"{name}.{key}" if name else key, kind)
        elif isinstance(value, (list, tuple)):
            for item in value:
                yield from texts(item, name, kind)
        elif isinstance(value, str) and (names_code(value) if kind == "agents" else kind == "code" and ":" in value):
            yield name, value

    return texts(content, "", "code")
