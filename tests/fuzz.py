"""Random bad inputs for every parser and every reader of files, in processes with limits of time and memory.

    python tests/fuzz.py --count 10000 --seed 0
    python tests/fuzz.py --seed 0 --case 123        # one input again, with its traceback

Inputs are mutations of valid inputs. Readers must accept them, or reject them in one line; accepted commands stop before they
compile or play. Tracebacks, hangs, crashes and gigabytes are failures, with exit code 1.
"""

import argparse
import contextlib
import copy
import importlib.util
import io
import json
import os
import random
import re
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
SECONDS = 30.0
"""Time limit of an input on a busy machine; most take milliseconds."""
START_SECONDS = 300.0
"""Time limit of the start of a process."""
MEGABYTES = 512
"""Limit of the memory that an input adds to a process."""
FAILURES = ("traceback", "not one line", "hang", "crash", "memory", "code was run")

Fuzzer = Callable[[random.Random], str | None]
"""Reads a random input: returns ``None`` if it was accepted, otherwise the message."""


class InternalError(Exception):
    """A command has reported an internal error."""


HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 2**31 - 1, 2**31, 2**63, 10**30, -(10**12), 0.5, -0.0, 1e308, 1e-320),
    *(float("nan"), float("inf"), -float("inf"), "", " ", "x", "nan", "\0", "\ud800", "\x1b[31m", "../..", "a" * 3000),
    *([], {}, [[]], [{}], {"": 0}, [None] * 50, ["a", 1], [1] * 2000, {"a": {"b": []}}),
)
"""Replacements of values."""
REQUESTS: tuple[dict[str, Any], ...] = (
    {"id": "a", "game": "duo", "options": {"size": 6}, "moves": ["a6", "I2e-a1a1", 5], "analyze_turns": [0, 2],
     "agent": {"num_simulations": 8, "max_seconds": 1.5, "priors": False}, "max_candidates": 3},
    {"id": 1, "game": "santorini", "options": {"placement": "random", "size": 4}, "deal": [[1, 1], [2, 2], [1, 2], [2, 1]]},
    {"id": "t", "action": "terminate", "terminate_id": "a"},
)  # fmt: skip
"""Requests to `tilewe-jax analyze`."""
CODE = (
    "canary_module:make",
    'gtp:command="mkdir canary"',
    "name=canary_module:make",
    "best:network=canary_module:make",
    "x=gumbel:num_simulations=2,network=canary_module:make",
    "puct:network=own.net",
)
"""Texts that name code, which creates the folder ``canary``."""
NAMES_CODE = ("game.id", "network.architecture", "network.size", "network.init", "selfplay.opponent", "evaluation.opponents")
"""Settings whose texts may name code."""


def with_code(rng: random.Random, settings: Any) -> Any:
    """Add a text that names code to the settings of a run."""
    settings = copy.deepcopy(settings)
    part, name = rng.choice(NAMES_CODE).split(".")
    text = rng.choice(CODE)
    settings[part][name] = [*rng.choice(([], ["random"])), text] if name == "opponents" else text
    if name == "opponent":
        settings[part]["opponent_fraction"] = 0.5
    settings["loss"]["td_lambda"] = rng.choice((1.0, 0.5))  # which makes the game while settings are read
    return settings


TILEWE: dict[str, Any] = {"players": 2, "size": 6, "pieces": ["O1", "I2", "L3"], "start_cells": [[[0, 0]], [[5, 5]]]}
"""Nested options of a game."""
CREATED: tuple[dict[str, Any], ...] = (
    {"game": "duo", "options": {"size": 6, "voluntary_pass": True}, "seats": [{"kind": "human", "name": "A"}, {"kind": "open"}],
     "clock": {"seconds": 300, "increment": 5}, "casual": True, "public": True},
    {"game": "triominos", "options": {"players": 3, "max_rounds": 5}, "seats": [{"kind": "human"}] * 3, "clock": None},
)  # fmt: skip
"""Requests for new games on the server."""


def configs(default: dict[str, Any]) -> list[dict[str, Any]]:
    """Settings of runs as in ``config.json``, with nested options of a game and with agents."""
    evaluation = {"opponents": ["random", "puct:num_simulations=4,network=santorini", "level:2", "last"], "gate": [0.0, 10.0]}
    selfplay = {"opponent": "puct:num_simulations=4", "opponent_fraction": 0.5, "warmup_policy": "greedy"}
    return [
        default,
        {**default, "game": {"id": "tilewe", "options": TILEWE}},
        {**default, "evaluation": {**default["evaluation"], **evaluation}},
        {**default, "selfplay": {**default["selfplay"], **selfplay}},
    ]


def mutated_json(rng: random.Random, value: Any) -> Any:
    """Replace, delete, add or repeat parts of a JSON value."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        parents = [item for item in _inside(value) if isinstance(item, (list, dict)) and item]
        if not parents or rng.random() < 0.02:
            value = copy.deepcopy(rng.choice(HOSTILE))
            continue
        parent = rng.choice(parents)
        key = rng.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
        change = rng.random()
        if change < 0.65:
            parent[key] = copy.deepcopy(rng.choice(HOSTILE))
        elif change < 0.8:
            del parent[key]
        elif change < 0.9 and isinstance(parent, dict):
            parent[rng.choice(("new", "", "id", "options", str(key) + "s"))] = copy.deepcopy(rng.choice(HOSTILE))
        elif isinstance(parent, list):
            parent.extend(parent[: rng.randrange(1, 20)])
        else:
            parent[key] = [parent[key]]
    return value


def _inside(value: Any) -> list[Any]:
    """List a value and all values inside."""
    items = [value]
    for item in items:
        if isinstance(item, (list, dict)):
            items += item.values() if isinstance(item, dict) else item
    return items


def mutated_bytes(rng: random.Random, content: bytes) -> bytes:
    """Change, delete, repeat or insert bytes."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 3, 10))):
        place = rng.randrange(len(data) + 1)
        change = rng.random()
        if change < 0.4 and data:
            data[min(place, len(data) - 1)] = rng.randrange(256)
        elif change < 0.55:
            data[place:place] = rng.choice(
                (b"[" * 2000, b"9" * 5000, b"\0", b"\n", b'"', b"\xff\xfe", b"\xef\xbb\xbf", b"{}", b",")
            )
        elif change < 0.7:
            del data[place : place + rng.choice((1, 2, 8, 100))]
        elif change < 0.8:
            del data[place:]
        elif change < 0.9:
            data[place:place] = data[place : place + rng.choice((1, 8, 300))]
        else:
            length = min(8, len(data) - place)
            data[place : place + length] = rng.choice((b"\xff", b"\0", b"\x7f")) * length
    return bytes(data)


def mutated_text(rng: random.Random, text: str) -> str:
    """Change some letters of an argument, without zero bytes."""
    letters = list(text)
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = rng.randrange(len(letters) + 1)
        change = rng.random()
        if change < 0.4:
            letters[place:place] = rng.choice(
                ("=", ",", ":", "-", " ", "[", "{", "9" * 30, "9" * 5000, "nan", "é", "\x1b", "a" * 500, "\n")
            )
        elif change < 0.7:
            letters[place : place + rng.choice((1, 3))] = []
        elif change < 0.85:
            letters[place:] = []
        else:
            letters[place:place] = letters[: rng.randrange(1, 30)]
    return "".join(letters)


class Inputs:
    """Valid inputs, and readers of their mutations. Works in the current folder."""

    def __init__(self) -> None:
        import jax
        import numpy as np

        import tilewe_jax
        from tests import bad_inputs
        from tests.tilewe_jax.formats.test_blksgf import random_record
        from tilewe_jax import presets, settings
        from tilewe_jax.formats import blksgf
        from tilewe_jax.formats.blokus import game_of_name
        from tilewe_jax.games.triominos.tiles import digits, tiles
        from tilewe_jax.networks import make, weights
        from tilewe_jax.registry import available_games, options
        from tilewe_jax.search import exported
        from tilewe_jax.training.config import TrainConfig

        self.bad_inputs = bad_inputs
        form = "tilewe-jax-games/1"
        record = {"deal": None, "actions": [1, 2, 3], "scores": [1, 2], "returns": [0.0, 1.0], "players": ["a", "b"]}
        header = {"format": form, "game": "duo", "options": {"size": 6}, "version": 1, "seed": 0}
        random_santorini = {**header, "game": "santorini", "options": {"placement": "random", "size": 4}}
        triominos = {**header, "game": "triominos", "options": {"tiles": 56}}
        deal = {"tiles": [digits(tile) for tile in tiles(5)], "starter": 0, "seed": [1, 2]}
        self.records = [
            [header, record, record],
            [random_santorini, {**record, "deal": [[1, 1], [2, 2], [1, 2], [2, 1]]}],
            [triominos, {**record, "deal": deal}],
            [{**header, "game": "tilewe", "options": TILEWE}, record],
        ]
        finished = random_record("duo_official", random.Random(0))
        text = blksgf.render(game_of_name("duo_official"), finished.actions, finished.players)
        self.blksgf = [
            text,
            "(;GM[Blokus Duo]PL[B]C[x](;B[e10](;W[j5])(;w[i5,j5]))(;B[e10,f10];AB[a1]))",
            f"{text.rstrip()[:-1]}(;C[a \\] b])(;B[a1]))\n{text}",
        ]
        self.gtp = ("1 play b f9,e10,f10", "genmove w # x", "time_settings 0 1 1", "set_game Blokus Duo", "loadsgf f 2", "g")
        self.gtp_santorini = ("1 play b c4-d4*e3", "genmove w", "p c3", "all_legal b", "set_game santorini", "undo", "g")
        self.config = settings.to_json(TrainConfig())
        self.configs = configs(self.config)
        self.santorini = tilewe_jax.make("santorini")
        self.small = tilewe_jax.make("santorini", size=3)
        model = jax.eval_shape(lambda: make(self.small, "mlp", "tiny", jax.random.key(0)))
        zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, np.float32), model)
        description = weights.Description("santorini", {"size": 3}, "mlp", "tiny", 0.0)
        weights.save(Path("own.npz"), zeros, description, self.small.version, {"config": self.config, "games": 3})
        self.weights = [(self.small, Path("own.npz")), (self.santorini, weights.FOLDER / "santorini.npz")]

        def apply(observation: Any) -> Any:
            return observation.sum() * jax.numpy.ones(self.small.num_logits), jax.numpy.ones(2) + 0 * observation.sum()

        exported.save(self.small, apply, Path("own.net"))
        self.preset = Path(presets.__path__[0], "santorini_cpu.py").read_text()
        self.options = {name: list(options(name)) for name in available_games()}
        self.settings = [row["name"] for row in settings.listing(TrainConfig())]
        iteration = {"iteration": 1, "seconds": 1.0, "play_seconds": 1.0, "learn_seconds": 1.0, "games": 2, "moves": 9}
        iteration |= {"simulations": 9, "plies": 9, "returns": [1.0, 1.0], "search_entropy": 1.0, "surprise": 0.1}
        iteration |= {"resigned": 0, "policy_loss": 1.0, "outcome_loss": 1.0, "score_loss": 1.0, "policy_entropy": 1.0}
        iteration |= {"agreement": 0.5, "calibration": [[1.0] * 10, [0.5] * 10, [0.5] * 10]}
        figures = {"win_rate": 0.5, "standard_error": 0.1, "seating": [[0, 1], [1, 0]], "results": [[1, 0], [0, 1]]}
        evaluation = {"iteration": 1, "seconds": 1.0, "games_before": 2, "opponents": {"random": figures, "greedy": figures}}
        self.logs = {"metrics.jsonl": [iteration, {**iteration, "iteration": 2}], "evaluations.jsonl": [evaluation]}
        self.fuzzers: dict[str, tuple[int, Fuzzer]] = {
            "records": (20, self.fuzz_records),
            "files of Pentobi": (6, self.fuzz_blksgf),
            "commands of GTP": (6, self.fuzz_gtp),
            "requests for analyses": (8, self.fuzz_analysis),
            "weights": (18, self.fuzz_weights),
            "config.json": (14, self.fuzz_config),
            "games of the server": (4, self.fuzz_server),
            "logs and reports": (4, self.fuzz_logs),
            "checkpoints": (3, self.fuzz_checkpoints),
            "resumed runs": (6, self.fuzz_resume),
            "exported networks": (6, self.fuzz_exported),
            "presets": (4, self.fuzz_presets),
            "agents": (9, self.fuzz_agents),
            "options of games": (9, self.fuzz_game_options),
            "settings": (8, self.fuzz_settings),
            "command lines": (14, self.fuzz_commands),
        }

    def run(self, rng: random.Random) -> tuple[str, str | None]:
        """Try a random input: returns the name of the reader, and the message or ``None``."""
        name = rng.choices(list(self.fuzzers), [weight for weight, _ in self.fuzzers.values()])[0]
        self.name = name  # where it fails
        return name, self.fuzzers[name][1](rng)

    def command(self, *arguments: str) -> str | None:
        """Run a command up to its work. Raises ``AssertionError`` if it prints more than one line."""
        from tilewe_jax.cli import crash

        outcome = self.bad_inputs.run(*arguments)
        if outcome.code in (None, 0):
            return None
        if outcome.code == crash.CODE:
            file = re.search(r"the traceback is in (\S+)", outcome.err)
            raise InternalError(Path(file[1]).read_text() if file else outcome.err)
        if not outcome.is_one_line:
            raise AssertionError(f"exit code {outcome.code}, not in one line: {outcome.err[:2000]}")
        return str(outcome.err)

    def fuzz_records(self, rng: random.Random) -> str | None:
        lines = rng.choice(self.records)
        if rng.random() < 0.6:
            index = rng.randrange(len(lines))
            lines = [mutated_json(rng, line) if number == index else line for number, line in enumerate(lines)]
        content = "\n".join(json.dumps(line) for line in lines).encode()
        Path("f").write_bytes(mutated_bytes(rng, content) if rng.random() < 0.5 else content)
        return self.command(rng.choice(("replay", "replay", "rate")), "f")

    def fuzz_blksgf(self, rng: random.Random) -> str | None:
        text = rng.choice(self.blksgf)
        text = mutated_text(rng, text) if rng.random() < 0.5 else text
        Path("f.blksgf").write_bytes(mutated_bytes(rng, text.encode("utf-8", "surrogateescape")))
        command = rng.choice((("convert", "f.blksgf", "f.jsonl"), ("show", "f.blksgf", "--brief")))
        return self.command(*command, *(("--variations",) if rng.random() < 0.5 else ()))

    def fuzz_gtp(self, rng: random.Random) -> str | None:
        from tests.tilewe_jax.agents.fake_gtp_engine import Lowest
        from tilewe_jax.formats.names import gtp_game, gtp_game_of_name
        from tilewe_jax.interop.gtp import GtpSession, serve

        answers = io.BytesIO()
        game, valid = gtp_game_of_name("Blokus Duo"), self.gtp
        if rng.random() < 0.5:
            game, valid = gtp_game("santorini", placement=rng.choice(("default", "chosen"))), self.gtp_santorini
        lines = [mutated_text(rng, line) if rng.random() < 0.5 else line for line in rng.choices(valid, k=5)]
        commands = io.BytesIO(mutated_bytes(rng, "\n".join(lines).encode("utf-8", "replace")))
        serve(GtpSession(game, Lowest, "1"), commands, answers)
        refused = [answer for answer in answers.getvalue().decode().split("\n\n") if answer.startswith("?")]
        assert not any("Error: " in answer for answer in refused), refused
        return refused[0] if refused else None

    def fuzz_analysis(self, rng: random.Random) -> str | None:
        from tilewe_jax.agents.analysis import AgentAnalyzer
        from tilewe_jax.interop.analysis import AnalysisSession
        from tilewe_jax.interop.analysis_requests import Defaults

        request = rng.choice([*REQUESTS, {"id": 1, "game": "triominos", "deal": self.records[2][1]["deal"], "moves": ["draw"]}])
        line = json.dumps(mutated_json(rng, request) if rng.random() < 0.7 else request).encode()
        session = AnalysisSession(Defaults("duo", {"size": 6}), AgentAnalyzer("puct:num_simulations=4"), "1")
        rows = session.receive(mutated_bytes(rng, line) if rng.random() < 0.4 else line)
        json.dumps(rows, allow_nan=False)
        refused = [row["error"] for row in rows if "error" in row]
        assert not any(re.match(r"[A-Za-z]+Error: ", message) for message in refused), refused
        return refused[0] if refused else None

    def fuzz_weights(self, rng: random.Random) -> str | None:
        from tilewe_jax.networks import weights

        game, source = rng.choice(self.weights)
        change = rng.random()
        if change < 0.3:
            Path("bad.npz").write_bytes(mutated_bytes(rng, source.read_bytes()))
        elif change < 0.6:
            import numpy as np

            with np.load(source) as file:
                about = json.loads(str(file["about"]))
            if rng.random() < 0.3 and "architecture" in about:
                about["architecture"] = rng.choice(CODE)
            text = json.dumps(mutated_json(rng, about)).replace("\x00", "")
            if rng.random() < 0.3:
                text = mutated_text(rng, text)
            self.bad_inputs.rewritten(source, Path("bad.npz"), {}, text)
        else:
            member = rng.choice(("w0.npy", "w1.npy", "about.npy"))
            self.bad_inputs.rewritten(source, Path("bad.npz"), {member: self._member(rng, source, member)})
        try:
            weights.read(game, Path("bad.npz"), any_game=rng.random() < 0.3)
        except ValueError as error:
            return str(error)
        return None

    def _member(self, rng: random.Random, source: Path, name: str) -> bytes | None:
        """Damage a member of an archive, or replace it."""
        import zipfile

        import numpy as np

        with zipfile.ZipFile(source) as file:
            content = file.read(name)
        shape = rng.choice(
            ((), (0,), (1,), (3, 3, 8, 32), (10**15,), (-1,), (2**40, 2**40), ("a",), [1], None, (True,), (1.5,))
        )
        descr = rng.choice(
            ("<f2", ">f2", "<f4", "<c8", "|O", "<U8", "<U0", "|b1", "<i8", "<M8[s]", [("a", "<f4")], "V8", 3, "")
        )
        change = rng.random()
        if change < 0.25:
            return mutated_bytes(rng, content)
        if change < 0.5:
            version = rng.choice((b"\x01\x00", b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x09"))
            return bytes(self.bad_inputs.header(shape, descr, version)) + bytes(rng.randrange(64))
        if change < 0.7:
            value = rng.choice((np.nan, np.inf, 1e300, 1j, "x", True, 3, np.datetime64("2020-01-01")))
            return bytes(self.bad_inputs.npy(np.full(rng.choice(((), (1,), (3, 3, 8, 32), (75, 64))), value)))
        if change < 0.9:
            return bytes(self.bad_inputs.npy(np.array([Canary()]), allow_pickle=True))
        return None

    def fuzz_config(self, rng: random.Random) -> str | None:
        Path("canary_module.py").write_text("import os\nos.makedirs('canary', exist_ok=True)\ndef make(*game): return None\n")
        Path("run").mkdir(exist_ok=True)
        config = rng.choice(self.configs)
        config = with_code(rng, config) if rng.random() < 0.4 else config
        content = json.dumps(mutated_json(rng, config) if rng.random() < 0.7 else config).encode()
        Path("run/config.json").write_bytes(mutated_bytes(rng, content) if rng.random() < 0.2 else content)
        if rng.random() < 0.3:
            return self.command("match", "--run", "run", "random", "random", "--games", "2")
        if rng.random() < 0.3:
            return self.command("train", "--out", "run", "--resume", "--json")
        from tilewe_jax.training.agents import check_warmup, opponent_policy
        from tilewe_jax.training.checkpoint import CheckpointError
        from tilewe_jax.training.evaluation import check_evaluation
        from tilewe_jax.training.run import read_config

        try:
            config = read_config(Path("run"))
            game = config.game.make()
            check_evaluation(config, game)
            check_warmup(config.selfplay, game)
            opponent_policy(config.selfplay, game)
        except (CheckpointError, ValueError) as error:
            return str(error)
        return None

    def fuzz_server(self, rng: random.Random) -> str | None:
        from tilewe_jax.web.rooms import Rooms
        from tilewe_jax.web.session import RefusedError

        rooms = object.__new__(Rooms)  # without a database and engines
        rooms.agents, rooms.engines = {}, None
        try:
            rooms._described(mutated_json(rng, rng.choice(CREATED)))
        except RefusedError as error:
            return str(error)
        return None

    def fuzz_logs(self, rng: random.Random) -> str | None:
        Path("run").mkdir(exist_ok=True)
        Path("run/config.json").write_text(json.dumps(mutated_json(rng, self.config) if rng.random() < 0.4 else self.config))
        for name, rows in self.logs.items():
            changed = [mutated_json(rng, row) if rng.random() < 0.5 else row for row in rows]
            content = "\n".join(json.dumps(row) for row in changed).encode()
            Path("run", name).write_bytes(mutated_bytes(rng, content) if rng.random() < 0.2 else content)
        return self.command("report", "run", "--json")

    def fuzz_checkpoints(self, rng: random.Random) -> str | None:
        from tilewe_jax.training import checkpoint
        from tilewe_jax.training.config import TrainConfig

        about = {"format": checkpoint.FORMAT, "config": self.config, "game_version": 1, "number": 3}
        folder = Path("checkpoints/000003/about")
        folder.mkdir(parents=True, exist_ok=True)
        content = json.dumps(mutated_json(rng, about)).encode()
        Path(folder, "metadata").write_bytes(mutated_bytes(rng, content) if rng.random() < 0.2 else content)
        try:
            numbers = checkpoint.numbers(Path("checkpoints"))
            checkpoint.restore(Path("checkpoints"), 3, {}, TrainConfig(), 1)
        except checkpoint.CheckpointError as error:
            return str(error)
        raise AssertionError(f"a checkpoint without a state was restored: {numbers}")

    def fuzz_resume(self, rng: random.Random) -> str | None:
        """Resume a damaged run. A rejected run must stay unchanged, and rows are dropped only with a note."""
        from types import SimpleNamespace
        from unittest import mock

        from tests.support import content
        from tilewe_jax.training import checkpoint, metrics

        run = self._damaged_run(rng)
        before_all = content(run)
        number = rng.choice((None, None, None, 3, 6, 7))
        given = [] if number is None else ["--checkpoint", str(number)]
        program = SimpleNamespace(game=self.santorini, mesh=SimpleNamespace(devices=SimpleNamespace(size=1)), like={})
        with (
            mock.patch("tilewe_jax.training.run.Program", return_value=program),
            mock.patch("tilewe_jax.training.checkpoint.restore", side_effect=self.bad_inputs.ReachedWorkError),
            mock.patch("tilewe_jax.training.loop.check_memory"),
            mock.patch("tilewe_jax.training.run.memory_needed", return_value={}),
        ):
            refused = self.command("train", "--resume", "--json", "--out", str(run), *given)
        assert content(run) == before_all, "a rejected run has changed"
        if refused is None:
            from tilewe_jax.training.config import TrainConfig

            reached = number or checkpoint.newest(run / "checkpoints") or 0
            counts = [path.read_bytes().count(b"\n") if path.exists() else 0 for path in (run / "metrics.jsonl",)]
            log = metrics.Log(run, TrainConfig(), None, reached)
            log.close()
            is_complete = [row["iteration"] for row in log.lines] == list(range(1, reached + 1)) and counts[0] <= reached
            assert is_complete or log.notes, "rows were lost silently"
        return refused

    def _damaged_run(self, rng: random.Random) -> Path:
        """Create a run with damaged files."""
        from tilewe_jax.training import checkpoint, metrics

        run = Path("resumed")
        shutil.rmtree(run, ignore_errors=True)
        rows = [{**self.logs[metrics.METRICS][0], "iteration": number} for number in range(1, 8)]
        for number in (3, 6):
            folder = run / "checkpoints" / f"{number:06d}"
            (folder / "about").mkdir(parents=True)
            (folder / "state").mkdir()
            about = {"format": checkpoint.FORMAT, "config": self.config, "game_version": self.santorini.version, "slim": False}
            (folder / "about" / "metadata").write_text(json.dumps(about))
            (folder / "state" / "part").write_bytes(rng.randbytes(200))
            checkpoint._write_checksums(folder)
        (run / "checkpoints" / "000007.unfinished").mkdir()
        (run / "config.json").write_text(json.dumps(self.config))
        for name, lines in ((metrics.METRICS, rows), (metrics.EVALUATIONS, self.logs[metrics.EVALUATIONS])):
            (run / name).write_text("".join(json.dumps(row) + "\n" for row in lines))
        files = sorted(path for path in run.rglob("*") if path.is_file())
        for path in rng.sample(files, k=rng.choice((0, 1, 1, 1, 2))):
            change = rng.random()
            before = path.read_bytes()
            if change < 0.1:
                path.unlink()
                os.mkfifo(path)
            elif change < 0.2:
                path.unlink()
            elif change < 0.6 or path.suffix not in (".json", ".jsonl"):
                path.write_bytes(mutated_bytes(rng, before))
            elif path.suffix == ".json":
                path.write_text(json.dumps(mutated_json(rng, json.loads(before))))
            else:
                lines = [json.loads(line) for line in before.splitlines()]
                index = rng.randrange(len(lines))
                lines[index] = mutated_json(rng, lines[index])
                if rng.random() < 0.3:
                    lines.insert(rng.randrange(len(lines)), lines.pop(index))
                path.write_text("".join(json.dumps(row) + "\n" for row in lines))
        return run

    def fuzz_exported(self, rng: random.Random) -> str | None:
        from tilewe_jax.search import exported

        Path("bad.net").write_bytes(mutated_bytes(rng, Path("own.net").read_bytes()))
        try:
            exported.load(self.small, "bad.net")
        except ValueError as error:
            return str(error)
        return None

    def fuzz_presets(self, rng: random.Random) -> str | None:
        content = mutated_text(rng, self.preset).encode("utf-8", "surrogatepass")
        Path("p.py").write_bytes(mutated_bytes(rng, content) if rng.random() < 0.3 else content)
        return self.command("bench", "train", "--preset", "p.py", "--seconds", "1")

    def fuzz_agents(self, rng: random.Random) -> str | None:
        from tilewe_jax.agents.spec import search_agents

        text = rng.choice((*search_agents(), "puct:num_simulations=8,network=santorini", "random", "name=greedy", "os:getcwd"))
        if rng.random() < 0.5 and "," in text:
            settings = text.split(",")
            place = rng.randrange(len(settings))
            value = rng.choice((*map(str, HOSTILE), "9" * 5000, "true", "none"))
            settings[place] = settings[place].partition("=")[0] + "=" + value.replace("\0", "")
            text = ",".join(settings)
        elif rng.random() < 0.9:
            text = mutated_text(rng, text)
        return self.command("match", "--game", "santorini", "random", _argument(text), "--games", "2")

    def fuzz_game_options(self, rng: random.Random) -> str | None:
        game = rng.choice(list(self.options))
        given = []
        for _ in range(rng.choice((1, 1, 2, 4))):
            name = rng.choice([*self.options[game], "size", "players", "nosuch"])
            value = rng.choice((*map(_as_text, HOSTILE), "O1,I2", "[" * 3000, "9" * 5000, "3", "random", "1,2,3", "true"))
            given.append(_argument(f"{name}={value}"))
        players = ["--players", str(rng.choice((1, 2, 3, -1, 10**12)))] if rng.random() < 0.2 else []
        games = ["--games", str(rng.choice((1, 4, 10**9))), "--batch", str(rng.choice((1, 4, 10**6, 10**12)))]
        return self.command("rollout", "--game", game, *games, *players, "--set", *given)

    def fuzz_settings(self, rng: random.Random) -> str | None:
        from tilewe_jax.training import config

        given = {}
        for _ in range(rng.choice((1, 1, 2, 5))):
            name = rng.choice([*self.settings, "game.options.size", "game.options.nosuch", "nosuch", "selfplay", ""])
            values = "1", "16", "0.5", "true", "none", "gumbel puct", "0 10", "santorini", "tilewe", "9" * 5000
            name = name if rng.random() < 0.95 else mutated_text(rng, name)
            given[name] = rng.choice((*map(_as_text, HOSTILE), *values))
        if rng.random() < 0.3:
            arguments = [_argument(f"{name}={value}") for name, value in given.items()]
            return self.command("bench", "train", "--preset", "santorini_cpu", "--set", *arguments)
        try:
            config.changed(config.TrainConfig(), given).game.make()
        except ValueError as error:
            return str(error)
        return None

    def fuzz_commands(self, rng: random.Random) -> str | None:
        numbers = ("0", "1", "4", "-1", "nan", "inf", "1e9", "10", str(2**31), str(2**63), "9" * 30, "9" * 5000, "x", "")
        flags = {
            "rollout": "games batch seed devices players set out game json",
            "match": "run num-simulations games opening batch seed devices sprt move-seconds out plot list game json",
            "bench": "game form policy batch seconds cores seed json",
            "perft": "depth players set game json",
            "train": "preset set resume devices list json num-processes coordinator process-id",
            "replay": "json",
            "show": "number brief svg",
            "render": "out format number move theme numbers analyses",
            "report": "curve json",
            "games": "json",
            "convert": "number",
            "analyze": "agent batch score-playouts seed players set game",
            "rate": "agent number mistakes batch score-playouts seed out brief json",
            "solve": "number move nodes json",
            "explore": "after positions json",
            "nosuch": "json",
        }
        texts = ["f", "/", "/dev/null/x", "run", "random", "puct", "size=6", "size", "=", "duo", "santorini", "-", "--", ":"]
        command = rng.choice(list(flags))
        reads = command in ("replay", "show", "render", "report", "convert", "rate", "solve", "explore")
        given = [rng.choice(("f", "/dev/zero", "run", "."))] if reads else []
        given += [rng.choice(("g.blksgf", "f", "/dev/zero"))] if command == "convert" else []
        for flag in rng.choices(flags[command].split(), k=rng.choice((0, 1, 2, 4))):
            given.append(f"--{flag}" if rng.random() < 0.95 else mutated_text(rng, f"--{flag}"))
            given += rng.choices(numbers if rng.random() < 0.6 else texts, k=rng.choice((0, 1, 1, 1, 1, 2)))
        given = ["nosuch" if item in ("-h", "--help") else _argument(item) for item in given]
        return self.command(command, *given)


class Canary:
    """Unpickling an instance creates a folder."""

    def __reduce__(self) -> Any:
        return os.makedirs, ("canary",)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _argument(text: str) -> str:
    """Return a text that an operating system can pass to a program, without zero bytes."""
    return text.replace("\0", "").encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")[:100_000]


def work(seed: int, first: int, step: int, last: int, show: bool) -> None:
    """Run the inputs ``first``, ``first + step``, ..., and print a line of JSON about each."""
    import matplotlib.figure

    from tests.bad_inputs import stopped_before_work

    answers = os.fdopen(os.dup(1), "w")
    tempfile.tempdir = tempfile.mkdtemp(prefix="fuzz")
    os.chdir(tempfile.tempdir)
    inputs = Inputs()
    # A picture takes a third of a second.
    matplotlib.figure.Figure.savefig = lambda self, file, **options: file.write("<svg/>")  # type: ignore[method-assign]
    with stopped_before_work():
        inputs.run(random.Random(0))
        _limit_memory()
        print(json.dumps({"case": "ready"}), file=answers, flush=True)
        for case in range(first, last, step):
            started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            outcome, said, target = "accepted", None, ""
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                try:
                    target, said = inputs.run(random.Random(f"{seed}/{case}"))
                    outcome = "accepted" if said is None else "one clear line"
                except AssertionError as error:
                    target, outcome, said = inputs.name, "not one line", str(error)
                except BaseException as error:
                    target, outcome = inputs.name, "memory" if isinstance(error, MemoryError) else "traceback"
                    said = traceback.format_exc() if show else f"{type(error).__name__}: {error}"
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
            if grown > MEGABYTES:
                outcome, said = "memory", f"{grown} MB: {said}"
            if Path("canary").exists():
                outcome = "code was run"
            row = {"case": case, "target": target, "outcome": outcome, "said": said if show else (said or "")[:300]}
            print(json.dumps({**row, "seconds": round(time.perf_counter() - started, 3)}), file=answers, flush=True)


def _limit_memory() -> None:
    """Limit the address space to the current size plus twice the limit of an input."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + (2 * MEGABYTES << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


class Worker:
    """A process that runs every ``step``-th input, and restarts after an input that crashed it."""

    def __init__(self, seed: int, first: int, step: int, last: int) -> None:
        self.seed, self.next, self.step, self.last = seed, first, step, last
        self.start()

    def start(self) -> None:
        cases = [str(number) for number in (self.seed, self.next, self.step, self.last)]
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), "TERM": "dumb"}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--work", *cases], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        assert self.process.stdout
        self.lines = self.process.stdout
        self.deadline = time.monotonic() + START_SECONDS

    @property
    def is_done(self) -> bool:
        return self.next >= self.last

    def poll(self) -> dict[str, Any] | None:
        """Return the outcome of the next input, if it is known."""
        if select.select([self.lines], [], [], 0)[0]:
            if line := self.lines.readline():
                row: dict[str, Any] = json.loads(line)
                self.deadline = time.monotonic() + SECONDS
                if row["case"] == "ready":
                    return None
                self.next += self.step
                return row
            return self.lost("crash", f"the process ended with code {self.process.wait()}")
        if time.monotonic() > self.deadline:
            return self.lost("hang", f"more than {SECONDS:.0f} s")
        return None

    def lost(self, outcome: str, said: str) -> dict[str, Any]:
        self.process.kill()
        self.process.wait()
        row = {"case": self.next, "target": "?", "outcome": outcome, "said": said, "seconds": SECONDS}
        self.next += self.step
        if not self.is_done:
            self.start()
        return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="number of inputs")
    parser.add_argument("--seed", type=int, default=0, help="decides the inputs")
    parser.add_argument("--workers", type=int, default=2, help="number of processes")
    parser.add_argument("--case", type=int, help="run only this input, and print its traceback")
    parser.add_argument("--work", type=int, nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(*arguments.work, show=False)
        return
    if arguments.case is not None:
        work(arguments.seed, arguments.case, 1, arguments.case + 1, show=True)
        return
    assert importlib.util.find_spec("jax")
    started = time.monotonic()
    workers = [Worker(arguments.seed, index, arguments.workers, arguments.count) for index in range(arguments.workers)]
    counts: Counter[tuple[str, str]] = Counter()
    slowest: dict[str, Any] = {"seconds": 0.0}
    while not all(worker.is_done for worker in workers):
        rows = [row for worker in workers if not worker.is_done and (row := worker.poll())]
        for row in rows:
            counts[row["target"], row["outcome"]] += 1
            slowest = max(slowest, row, key=lambda row: row["seconds"])
            if row["outcome"] in FAILURES:
                print(json.dumps(row), flush=True)
            if (done := sum(counts.values())) % 500 == 0:
                print(f"{done:,} of {arguments.count:,} inputs, {time.monotonic() - started:.0f} s", flush=True)
        if not rows:
            time.sleep(0.005)
    outcomes = ["accepted", "one clear line", *FAILURES]
    print(f"{'':24}" + "".join(f"{outcome:>16}" for outcome in outcomes))
    for target in [*dict.fromkeys(sorted(target for target, _ in counts)), "total"]:
        row = [
            sum(n for (name, kind), n in counts.items() if kind == outcome and target in (name, "total"))
            for outcome in outcomes
        ]
        print(f"{target:24}" + "".join(f"{number:>16,}" for number in row))
    print(f"slowest: {slowest['seconds']} s, input {slowest.get('case')} ({slowest.get('target')})")
    sys.exit(any(outcome in FAILURES for _, outcome in counts))


if __name__ == "__main__":
    main()
