"""Bad arguments and bad files: each command says in one line what is wrong, without compiling or playing anything."""

import json
import math
import os
import pickle
import stat
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import tilewe_jax
from tests.bad_inputs import Outcome, header, npy, rewritten, run, stopped_before_work
from tilewe_jax import settings
from tilewe_jax.networks import weights
from tilewe_jax.search import exported
from tilewe_jax.training.config import TrainConfig
from tilewe_jax.training.loop import Run
from tilewe_jax.training.program import Program
from tilewe_jax.utils.files import read_json, replacing

SMALL = "--set size=6 pieces=O1,I2,L3,T4 --players 2"
HEADER = json.dumps({"format": "tilewe-jax-games/1", "game": "duo", "options": {"size": 6}, "version": 1, "seed": 0})
RECORD = '{"deal": null, "actions": [], "scores": [0, 0], "returns": [0.5, 0.5]}'
SHIPPED = weights.FOLDER / "santorini.npz"
with np.load(SHIPPED) as _arrays:
    SHAPE, COUNT = _arrays["w0"].shape, len(_arrays.files) - 1
"""The shape of its first array, and how many it holds besides the text about it."""
HOST = "tests.tilewe_jax.agents.test_host_agent:Lowest"
HUGE = 10**30
DIGITS = "9" * 5000
START = Run.start


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with stopped_before_work():
        yield


def refuses(outcome: Outcome, message: str) -> None:
    assert outcome.is_one_line, outcome
    assert message in outcome.err
    assert len(outcome.err) < 6000


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"rollout {SMALL} --seed {HUGE}", "--seed must be an integer of 64 bits"),
        (f"arena {SMALL} --seed {HUGE}", "--seed must be an integer of 64 bits"),
        (f"bench {SMALL} --seed {HUGE}", "--seed must be an integer of 64 bits"),
        (f"train --out run --set seed={HUGE}", "seed must be between -2147483648 and 2147483647"),
        ("rollout --batch 1000000000 --games 1000000000", "games at once (--batch) need about"),
        (f"rollout --batch {10**12} --games {10**12}", "1,000,000,000,000 games at once (--batch) need about"),
        (f"rollout --batch {10**12} --games {10**12} --out f", "games at once (--batch) need about"),
        (f"match --game duo random random --batch {10**12} --games {10**12}", "would fit"),
        (f"match --game duo random --batch {10**12} --games {10**12}", "would fit"),
        ("match --game duo random random --games 1000000000000 --batch 4", "would fit"),
        (f"match --game duo random puct:num_simulations={10**9}", "not a single one would fit"),
        (f"match --game duo random puct:num_simulations={10**12}", "num_simulations must be at most 2147483647"),
        (f"match --game duo random puct:num_simulations={DIGITS}", "num_simulations must be an integer"),
        (f"match --game duo random puct:max_depth={10**12}", "max_depth must be at most 2147483647"),
        ("match --game duo random puct:c_init=1e999", "c_init must be a number"),
        ("bench --seconds nan", "--seconds must be positive, not nan"),
        ("bench --seconds inf", "--seconds must be finite"),
        ("bench --batch 0", "--batch must be positive"),
        ("rollout --devices 100000", "--devices must be at most 1024"),
        ("train --out run --devices 100000", "--devices must be at most 1024"),
        ("train --out run --devices 7", "devices must be 1 to 4"),
        ("train --out run --coordinator localhost:1 --num-processes 1 --process-id 5", "not 5 of 1"),
        ("train --out run --coordinator localhost:1 --num-processes -1 --process-id 0", "not 0 of -1"),
        ("train --out run --coordinator localhost --num-processes 2 --process-id 0", "must be host:port"),
        ("train --out run --coordinator localhost:x --num-processes 2 --process-id 0", "must be host:port"),
        ("train --out run --coordinator localhost:70000 --num-processes 2 --process-id 0", "must be host:port"),
        (
            "train --out run --distributed --process-id 0 --coordinator a:1 --num-processes 1",
            "cannot be given with --distributed",
        ),
        ("perft --depth 1000", "--depth must be at most 84, the longest game"),
        (f"perft --depth {10**12}", "--depth must be at most 84"),
        (f"match random random {SMALL} --opening -1", "the opening must have 0 to 8 moves"),
        (f"match random random {SMALL} --opening {10**9}", "the opening must have 0 to 8 moves"),
        (f"arena {SMALL} --move-seconds nan", "--move-seconds must be positive, not nan"),
        (f"arena {SMALL} --sprt nan nan", "the Elos of a sequential test"),
        (f"arena {SMALL} --sprt -1e308 1e308", "the Elos of a sequential test"),
        ("rollout --set size=6 size=7", "--set gives size twice, as '6' and as '7'"),
        ("rollout --set players=2 --players 3", "give one of them"),
        ("train --out run --set iterations=1 iterations=2", "--set gives iterations twice"),
        (f"rollout --set size={DIGITS}", "size must be an integer"),
        (f"rollout --set size={HUGE}", "size must be 3 to 32"),
        (f"rollout --set pieces={'[' * 9000}", "pieces must be names among"),
        ("rollout --set pieces=1,2", "pieces must be a list of texts"),
        ("rollout --game :", "give module:factory"),
        ("rollout --game no_such_module:f", "No module named 'no_such_module'"),
        ("match --game duo random :", "module:factory"),
        ("bench --search", "tilewe-jax bench search"),
        ("bench --train santorini_cpu", "tilewe-jax bench train"),
        ("bench train --preset santorini_cpu --game duo", "--game"),
        ("bench --form board --policy random", "--policy cannot be given with --form board"),
        ("bench play --num-simulations 8", "--num-simulations"),
        ("match --run run --game duo", "--game cannot be given with --run"),
        ("match random random --num-simulations 7", "--num-simulations cannot be given without --run"),
        ("match --list --out f", "--out cannot be given with --list"),
        ("ladder", "--agent and --opponent are needed"),
        ("ladder --agent random", "--agent and --opponent are needed"),
        ("ladder --agent random --opponent random --levels 1-3", "--levels are needed where --opponent contains {level}"),
        ("ladder --agent random --opponent gtp:{level}", "--levels are needed where --opponent contains {level}"),
        ("ladder --agent random --opponent {level} --levels 3-1", "--levels must be like 1-6 or 1,3,5"),
        ("ladder --agent random --opponent {level} --levels 1-999999999", "--levels must be like 1-6 or 1,3,5"),
        ("ladder --agent random --opponent {level} --levels 1,2 --games 1 2 3", "one for each of 2 levels, not 3"),
        ("ladder --agent random --opponent random --games 0", "--games must be positive, not 0"),
        ("ladder --game duo --agent random --opponent random --own-seats 2", "--own-seats must be 1 to 1"),
        ("ladder --game duo --agent nobody --opponent random", "duo has no agent 'nobody'"),
        ("ladder --game duo --agent random --opponent random --random-opening 99", "--random-opening must be 0 to 42"),
        ("ladder --game duo --agent random --opponent random --openings none.json", "none.json"),
        ("ladder --game duo --agent random --opponent random --precision nan", "--precision must be positive, not nan"),
        ("ladder --game duo --agent random --opponent random --seconds-per-move 1", "agent 'random' is no search"),
        ("ladder --game duo --agent random --opponent random --level-elo 1 2", "--level-elo must be one for each"),
        ("openings --game duo_official", "--engine and --out are needed"),
        ("ladder --agent random --opponent random --games", "--games must be positive, not 0"),
        ("openings --game santorini --engine true --out f", "santorini has no moves that are sets of cells"),
        ("train --list --resume", "--resume cannot be given with --list"),
        ("train --out run --set evaluation.opponents=nosuch", "santorini has no agent 'nosuch'"),
        ("train --out run --set replay.records=nowhere", "replay.records: nowhere: No such file"),
        ("train --out run --set evaluation.eval_opening=1000", "eval_opening must be at most 100"),
        ("train --out run --set selfplay.warmup_policy=nosuch", "warmup_policy for santorini must be one of"),
        ("train --out run --set selfplay.num_games=2000000000", "(selfplay.num_games) would fit"),
        (f"train --out run --set selfplay.num_games={10**12}", "selfplay.num_games must be at most 2147483647"),
        ("train --out run --set optimizer.learning_rate=inf", "optimizer.learning_rate must be a number"),
        ("train --out run --set max_minutes=nan", "max_minutes must be"),
        ("train --out run --preset nosuch.py", "No such file"),
        ("train --out run --set selfplay.opponent=random", "selfplay.opponent_fraction belong together"),
        ("train --out run --set selfplay.opponent=nosuch selfplay.opponent_fraction=0.5", "santorini has no agent 'nosuch'"),
        (
            f"train --out run --set selfplay.opponent={HOST} selfplay.opponent_fraction=1",
            "must be an agent that decides on the",
        ),
        ("analyze --agent one_ply --game santorini", "one_ply does not search; an analysis needs an agent that searches"),
        ("analyze --agent nosuch", "tilewe has no agent 'nosuch'; an analysis needs an agent that searches"),
        ("analyze --agent puct:num_simulations=1000000000", "not a single one would fit"),
        ("analyze --game duo --agent puct:network=santorini", "is for santorini, not for duo: the rules differ"),
        (f"analyze --seed {HUGE}", "--seed must be an integer of 64 bits"),
        ("analyze --batch 0", "--batch must be positive"),
        (f"analyze --batch {10**12}", "--batch must be at most 65,536"),
        ("analyze --score-playouts -1", "--score-playouts must be 0 to 65,536, not -1"),
        ("rate nosuch", "nosuch: No such file"),
        ("rate nosuch --mistakes 0", "--mistakes must be positive"),
        ("rate nosuch --out /no/such/folder/file", "there is no folder /no/such/folder"),
        ("rate /dev/zero", "it is a pipe or a device"),
        ("replay /dev/zero", "/dev/zero: it is a pipe or a device, not a regular file"),
        ("show /dev/zero", "it is a pipe or a device"),
        ("report /dev/zero", "Not a directory"),
    ],
    ids=lambda text: text[:60],
)
def test_arguments(command: str, message: str) -> None:
    refuses(run(*command.split()), message)


@pytest.mark.parametrize(
    "command",
    [
        "rollout --game santorini --set size=3 --games 4 --batch 4 --out f --seed -5",
        f"match random random {SMALL} --games 4 --batch 4",
        f"match random random {SMALL} --games 4 --opening 8",
        "bench --batch 4 --seconds 0.1",
        "perft --depth 84",
    ],
)
def test_good_arguments_reach_their_work(command: str) -> None:
    assert run(*command.split()) == Outcome(None, "", "")


def test_rated_games_are_read_before_anything_is_compiled() -> None:
    Path("f").write_text(f"{HEADER}\n{RECORD.replace('[]', '[30, 30]')}")
    refuses(run("rate", "f"), "f: game 1: move 2: action 30, O1n at a6, is illegal for yellow: ")
    refuses(run("rate", "f", "--number", "2"), "f: game 1: move 2")
    Path("f").write_text(f"{HEADER}\n{RECORD.replace('[]', '[30]')}")
    refuses(run("rate", "f", "--number", "2"), "--number must be 1 to 1, the games in f, not 2")
    refuses(run("rate", "f", "--agent", "random"), "random does not search")
    assert run("rate", "f") == Outcome(None, "", "")
    Path("f").write_text(HEADER)
    refuses(run("rate", "f"), "f: it has no games")
    Path("f.blksgf").write_text("(;GM[Blokus Duo];W[e10])")
    refuses(run("rate", "f.blksgf"), "f.blksgf: game 1: move 1, W[e10], is not the turn of B")


def test_weights_to_begin_with_are_read_before_anything_is_compiled() -> None:
    for name, message in (("nosuch.npz", "No such file"), ("nosuch", "network.init 'nosuch': not found; shipped are")):
        config = settings.changed(TrainConfig(), {"network.init": name})
        program = SimpleNamespace(game=config.game.make(), mesh=SimpleNamespace(devices=np.zeros(1)))  # with nothing to begin
        with pytest.raises(ValueError, match=message):
            START(Run(config, Path("run"), cast(Program, program)))
        assert not Path("run").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[" * 100_000, "line 1: this is not a JSON object"),
        (f"{HEADER}\n{'[' * 100_000}", "line 2: this is not a JSON object"),
        (f"{HEADER}\n{RECORD.replace('null', '[' * 90 + ']' * 90)}", "line 2: this is not a JSON object"),
        (f"{HEADER}\n{RECORD.replace('[0, 0]', f'[{DIGITS}, 0]')}", "line 2: this is not a JSON object"),
        (f"{HEADER}\n{RECORD.replace('0.5, ', '9' * 400 + ', ')}", "lists of numbers"),
        (f"{HEADER}\n{RECORD.replace('0.5, ', 'NaN, ')}", "lists of numbers"),
        (f"{HEADER}\n{RECORD.replace('[0, 0]', '[2147483648, 0]')}", "lists of numbers"),
        (f"{HEADER}\n{RECORD.replace('null', '7')}", "starts without a deal"),
        (f'{HEADER}\n{RECORD[:-1]}, "players": [1, 2]}}', "players are the names"),
        (f"{HEADER}\n\n{RECORD}", "line 2: it is empty, and games follow"),
        (HEADER.replace('{"size": 6}', "[6]"), "line 1"),
        (HEADER.replace('"duo"', "[]"), "line 1"),
        (f"{HEADER}\n{'x' * (1 << 20)}y", "line 2: it is longer than 1,048,576 bytes"),
    ],
    ids=range(13),
)
def test_records(content: str, message: str) -> None:
    Path("f").write_text(content)
    for command in ("replay", "show", "rate"):
        refuses(run(command, "f"), message)


def test_records_with_a_mark_and_blank_last_lines() -> None:
    Path("f").write_text(f"\ufeff{HEADER}\n{RECORD}\n\n \n")
    game, games = tilewe_jax.records.read("f")
    assert (game.id, len(games)) == ("duo", 1)


def test_pipes_and_large_files_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo("pipe.npz")
    os.symlink("pipe.npz", "link")
    for command in ("replay link", "match --game santorini gumbel:network=pipe.npz random"):
        refuses(run(*command.split()), "it is a pipe or a device, not a regular file")
    monkeypatch.setattr("tilewe_jax.records.FILE_LIMIT", 3)
    Path("f").write_text(HEADER)
    refuses(run("replay", "f"), f"f: it has {len(HEADER)} bytes; at most 3 are read")


class Canary:
    """Unpickling this makes a file."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("canary",)


def _about(**changes: Any) -> dict[str, Any]:
    about = {"format": 2, "game": "santorini", "options": {}, "architecture": "resnet", "size": "nano", "score_weight": 0.0}
    return {**about, "game_version": 1, **changes}


@pytest.mark.parametrize(
    ("members", "about", "message"),
    [
        ({}, [1], "about is no JSON object"),
        ({}, "[" * 9000, "about: it is nested too deeply"),
        ({}, {"config": []}, "does not say what it is for"),
        ({}, _about(size=["nano"]), "game, architecture and size are names, and options an object"),
        ({}, _about(options=[1]), "game, architecture and size are names, and options an object"),
        ({}, _about(game=3), "game, architecture and size are names, and options an object"),
        ({}, _about(options={"size": HUGE}), "size must be 3 to 10"),
        ({}, _about(size="vast"), "network.size must be one of"),
        ({}, _about(architecture="none"), "network.architecture 'none' is not registered for santorini here"),
        ({}, _about(score_weight="x"), "score_weight must be between 0 and 1, not 'x'"),
        ({}, _about(score_weight=float("nan")), "score_weight must be between 0 and 1, not nan"),
        ({}, _about(format=3), "it has format 3, not 2"),
        ({"w0.npy": npy(np.full(SHAPE, np.nan, np.float16))}, None, "has values that are not finite"),
        ({"w0.npy": npy(np.full(SHAPE, 1e300))}, None, "has values that are not finite"),
        ({"w0.npy": npy(np.zeros(SHAPE, np.complex64))}, None, "has dtype complex64"),
        ({"w0.npy": npy(np.zeros(SHAPE, np.int8))}, None, "has dtype int8"),
        ({"w0.npy": npy(np.zeros(SHAPE, "U2"))}, None, "has dtype <U2"),
        ({"w0.npy": npy(np.zeros(SHAPE, "f4,f4"))}, None, "has dtype [('f0'"),
        ({"w0.npy": npy(np.array([Canary()]), allow_pickle=True)}, None, "has shape (1,)"),
        ({"about.npy": npy(np.array(Canary()), allow_pickle=True)}, None, "has dtype object"),
        ({"w0.npy": pickle.dumps(Canary())}, None, "array w0 cannot be read: the magic string"),
        ({"w0.npy": header((10**15,))}, None, "has shape (1000000000000000,)"),
        ({"w0.npy": header(SHAPE) + b"\0" * 9}, None, "does not have the size that its shape"),
        ({"w0.npy": header((-3, -3, *SHAPE[2:])) + b"\0" * (2 * math.prod(SHAPE))}, None, "has shape (-3, -3, "),
        ({"w0.npy": header("((" * 3000)}, None, "array w0"),
        ({"w0.npy": npy(np.zeros(2_000_000, np.float16))}, None, "has shape (2000000,)"),
        ({"w0.npy": None}, None, f"it holds {COUNT - 1} arrays"),
        ({"w0.npy": None, "x.npy": b""}, None, "There is no item named 'w0.npy'"),
        ({"more.npy": b""}, None, f"it holds {COUNT + 1} arrays"),
    ],
    ids=range(29),
)
def test_weights(members: dict[str, bytes | None], about: Any, message: str) -> None:
    rewritten(SHIPPED, Path("bad.npz"), members, about)
    refuses(run("match", "--game", "santorini", "gumbel:network=bad.npz", "random"), message)
    assert not Path("canary").exists()


def test_archives_that_are_none() -> None:
    shipped = SHIPPED.read_bytes()
    for content, message in (
        (b"", "it is not an .npz archive"),
        (pickle.dumps(Canary()), "it is not an .npz archive"),
        (shipped[:-100], "it is not an .npz archive"),
        (shipped[100:], "is not a file of weights"),
        (shipped[:-12] + b"\xff\xff\xff\x7f" + shipped[-8:], "is not a file of weights"),
        (shipped[:-10] + b"\xff\xff\xff\x7f" + shipped[-6:], "it holds too many arrays"),
        (shipped[:300] + b"????" + shipped[304:], "is not a file of weights"),
    ):
        Path("bad.npz").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            weights.read(tilewe_jax.make("santorini"), Path("bad.npz"))
    assert not Path("canary").exists()


def test_a_zip_bomb_is_not_unpacked() -> None:
    """A member that unpacks to two gigabytes; its compressed data are never asked for."""
    with zipfile.ZipFile(SHIPPED) as old, zipfile.ZipFile("bad.npz", "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name != "w0.npy":
                new.writestr(name, old.read(name))
        with new.open("w0.npy", "w") as member:
            member.write(header((1 << 23, 2)))
            member.write(b"\0" * (1 << 25))
    with pytest.raises(ValueError, match=r"has shape \(8388608, 2\)"):
        weights.read(tilewe_jax.make("santorini"), Path("bad.npz"))


def test_exported_networks() -> None:
    os.mkfifo("pipe")
    game = tilewe_jax.make("santorini")
    for content, message in ((b"", "is not a file of a network"), (pickle.dumps(Canary()), "is not a file of a network")):
        Path("net").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            exported.load(game, "./net")
    with pytest.raises(ValueError, match="pipe or a device"):
        exported.load(game, "./pipe")
    assert not Path("canary").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "settings"),
        ("{", "config.json"),
        ("[" * 100_000, "nested too deeply"),
        ('{"game": 3}', "game"),
        ('{"game": {"id": 3}}', "network.architecture is missing"),
        ('{"game": {"id": "duo", "options": 3}}', "settings of a run"),
        ('{"nothing": 1}', "settings of a run"),
    ],
)
def test_config_json(content: str, message: str) -> None:
    Path("run").mkdir()
    Path("run/config.json").write_text(content)
    refuses(run("report", "run"), message if message != "settings" else "these are not the settings of a run")
    for command in ("match --run run", "train --out run --resume"):
        outcome = run(*command.split())
        assert outcome.is_one_line
        assert "run/config.json" in outcome.err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": HUGE}, "seed must be between"),
        ({"max_minutes": float("inf")}, "max_minutes must be a number, not inf"),
        ({"evaluation": {"opponents": 3}}, "evaluation.opponents must be a list of texts, not 3"),
        ({"evaluation": {"opponents": [3]}}, "evaluation.opponents must be a list of texts"),
        ({"evaluation": {"gate": [0]}}, "evaluation.gate must be 2 numbers or none"),
        ({"evaluation": {"gate": ["a", "b"]}}, "evaluation.gate must be"),
        ({"selfplay": {"search": {"candidate_pool": "many"}}}, "candidate_pool must be an integer or none"),
        ({"selfplay": {"search": {"num_simulations": HUGE}}}, "num_simulations must be at most 2147483647"),
        ({"selfplay": {"rule": ["puct"]}}, "selfplay.rule must be one of gumbel, puct"),
        ({"game": {"options": 3}}, "game.options must be a JSON object, not 3"),
    ],
    ids=range(10),
)
def test_settings_of_wrong_types(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        settings.from_json(TrainConfig, changes)


def test_logs_of_wrong_form() -> None:
    Path("run").mkdir()
    Path("run/config.json").write_text(json.dumps(settings.to_json(TrainConfig())))
    for name, row in (("metrics", "{}"), ("metrics", '{"iteration": 1}'), ("evaluations", "3"), ("metrics", "[]")):
        for path in Path("run").glob("*.jsonl"):
            path.unlink()
        Path(f"run/{name}.jsonl").write_text(row + "\n")
        refuses(run("report", "run"), "run")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1/0", "ZeroDivisionError: division by zero (preset.py, line 1)"),
        ("\n\nraise SystemExit(0)", "SystemExit: 0 (preset.py, line 3)"),
        ("CONFIG = (", "'(' was never closed (preset.py, line 1)"),
        ("\0", "preset.py"),
        ("import nosuch", "No module named 'nosuch'"),
        ("CONFIG = 3", "preset preset.py must define CONFIG"),
        (
            "from tilewe_jax.training.config import *\nCONFIG = TrainConfig(iterations=0)",
            "iterations must be at least 1, not 0 (preset.py, line 2)",
        ),
    ],
    ids=range(7),
)
def test_presets(code: str, message: str) -> None:
    Path("preset.py").write_text(code)
    refuses(run("train", "--out", "run", "--preset", "preset.py"), message)


def test_code_of_others_that_raises() -> None:
    Path("raises_at_once.py").write_text("def make(*game): 1/0\n")
    Path("has_an_error.py").write_text("def make(\n")
    Path("exits.py").write_text("import sys; sys.exit()\n")
    for module, message in (("raises_at_once", "division by zero"), ("has_an_error", "never closed"), ("exits", "SystemExit")):
        for command in (
            "rollout --game {}",
            "match --game duo random {}",
            "match --game duo random puct:network={}",
        ):
            refuses(run(*command.format(f"{module}:make").split()), message)


def test_files_are_replaced_through_links_and_keep_their_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(path: str, text: str = "new") -> None:
        with replacing(path) as file:
            file.write(text)

    folder = Path("folder")
    folder.mkdir()
    target = folder / "target"
    target.write_text("old")
    target.chmod(0o640)
    os.symlink("folder/target", "link")
    os.symlink("link", "second")
    write("second")
    assert Path("link").is_symlink()
    assert Path("second").is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    with pytest.raises(UnicodeEncodeError):
        write("link", "half, and then what cannot be written: \ud800")
    assert target.read_text() == "new"
    os.symlink("folder/absent", "dangling")
    before = os.umask(0o027)
    try:
        write("dangling")
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "absent").stat().st_mode) == 0o640
    assert sorted(os.listdir(folder)) == ["absent", "target"]
    os.symlink("loop", "loop")
    refuses(run(*f"rollout {SMALL} --games 4 --out loop".split()), "cannot write loop: Too many levels of symbolic links")
    refuses(run(*f"rollout {SMALL} --games 4 --out folder".split()), "it is a folder")


def test_pipes_and_devices_are_written_directly() -> None:
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    with replacing("pipe") as file:
        file.write("through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
    assert os.listdir(".") == ["pipe"]
    descriptor = os.open("kept", os.O_RDWR | os.O_CREAT)
    os.write(descriptor, b"before, ")
    with replacing(f"/dev/fd/{descriptor}") as file:  # as in `--out /dev/stdout > kept`
        file.write("in between")
    os.write(descriptor, b", after")
    os.close(descriptor)
    assert Path("kept").read_text() == "before, in between, after"
    try:
        os.mknod("device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes devices")
    with replacing("device") as file:
        file.write("gone")
    assert stat.S_ISCHR(os.stat("device").st_mode)


def test_json_of_any_kind() -> None:
    for content, message in ((b"\xff", "UTF-8|Expecting"), (b"1" * 5000, "digits"), (b"", "Expecting value")):
        Path("f").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_json("f")
