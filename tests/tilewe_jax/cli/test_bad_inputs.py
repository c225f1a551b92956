"""Bad arguments and bad files: each command prints one line, without compiling or playing anything."""

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
"""Shape of its first array, and the number of its arrays."""
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


def rejects(outcome: Outcome, message: str) -> None:
    assert outcome.is_one_line, outcome
    assert message in outcome.err
    assert len(outcome.err) < 3000


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"rollout {SMALL} --seed {HUGE}", "--seed"),
        (f"train --out run --set seed={HUGE}", "seed"),
        (f"rollout --batch {10**12} --games {10**12}", "(--batch)"),
        (f"rollout --batch {10**12} --games {10**12} --out f", "(--batch)"),
        (f"match --game duo random random --batch {10**12} --games {10**12}", "GB"),
        ("match --game duo random random --games 1000000000000 --batch 4", "GB"),
        (f"match --game duo random puct:num_simulations={10**9}", "GB"),
        (f"match --game duo random puct:num_simulations={10**12}", "num_simulations"),
        (f"match --game duo random puct:num_simulations={DIGITS}", "num_simulations"),
        (f"match --game duo random puct:max_depth={10**12}", "2147483647"),
        ("match --game duo random puct:c_init=1e999", "c_init"),
        ("bench --seconds nan", "--seconds"),
        ("bench --seconds inf", "--seconds"),
        ("bench --cores 999", "--cores must be 1 to"),
        ("bench search --num-simulations 0", "--num-simulations"),
        ("rollout --batch=many", "'many'"),
        ("rollout --games -1", "--games must be positive"),
        ("rollout --game duo --players 2", "players"),
        ("rollout --game santorini --set size=2", "size must be 3 to 10"),
        ("rollout --game santorini --set placement=any", "placement must be one of default, random, chosen"),
        ("rollout --game triominos --set hex_scores=50,60", "hex_scores"),
        ("rollout --devices 100000", "--devices"),
        ("rollout --devices 64 --games 1", "--devices must be 1 to 4"),
        ("train --out run --devices 7", "devices must"),
        ("train --out run --coordinator localhost:1 --num-processes 1 --process-id 5", "5"),
        ("train --out run --coordinator localhost:1 --num-processes -1 --process-id 0", "-1"),
        ("train --out run --coordinator localhost:x --num-processes 2 --process-id 0", "host:port"),
        ("train --out run --coordinator localhost:70000 --num-processes 2 --process-id 0", "host:port"),
        ("train --out run --distributed --process-id 0 --coordinator a:1 --num-processes 1", "--distributed"),
        (f"perft --depth {10**12}", "--depth"),
        ("perft --depth 0", "--depth must be positive"),
        (f"match random random {SMALL} --opening -1", "opening must"),
        (f"match random random {SMALL} --opening {10**9}", "opening must"),
        (f"match random random {SMALL} --move-seconds nan", "--move-seconds"),
        (f"match random random {SMALL} --sprt nan nan", "--sprt"),
        (f"match random random {SMALL} --sprt -1e308 1e308", "sequential test"),
        ("match --sprt a 5", "'a 5'"),
        ("match random turtle", "--players 2"),
        ("match random --list random=1 --set x=1 --list", "x"),
        ("rollout --set size=6 size=7", "--set"),
        ("rollout --set players=2 --players 3", "--players"),
        ("train --out run --set iterations=1 iterations=2", "iterations twice"),
        (f"rollout --set size={DIGITS}", "size must"),
        (f"rollout --set pieces={'[' * 9000}", "names among"),
        ("rollout --set pieces=1,2", "pieces must"),
        ("rollout --game :", "module:factory"),
        ("rollout --game no_such_module:f", "'no_such_module'"),
        ("match --game duo random :", "module:factory"),
        ("bench --search", "tilewe-jax bench search"),
        ("bench train --preset santorini_cpu --game duo", "--game"),
        ("bench --form board --policy random", "--policy"),
        ("bench play --num-simulations 8", "--num-simulations"),
        ("match --run run --game duo", "--game"),
        ("match random random --num-simulations 7", "--num-simulations"),
        ("match --list --out f", "--list"),
        ("ladder --agent random", "--opponent"),
        ("ladder --agent random --opponent random --levels 1-3", "--opponent"),
        ("ladder --agent random --opponent gtp:{level}", "--opponent"),
        ("ladder --agent random --opponent {level} --levels 3-1", "--levels"),
        ("ladder --agent random --opponent {level} --levels 1-999999999", "--levels"),
        ("ladder --agent random --opponent {level} --levels 1,2 --games 1 2 3", "--games"),
        ("ladder --agent random --opponent random --games", "--games"),
        ("ladder --game duo --agent random --opponent random --own-seats 2", "--own-seats must be 1 to 1"),
        ("ladder --game duo --agent nobody --opponent random", "'nobody'"),
        ("ladder --game duo --agent random --opponent random --random-opening 99", "--random-opening must be 0 to 42"),
        ("ladder --game duo --agent random --opponent random --openings none.json", "none.json"),
        ("ladder --game duo --agent random --opponent random --precision nan", "--precision"),
        ("ladder --game duo --agent random --opponent random --seconds-per-move 1", "'random'"),
        ("ladder --game duo --agent random --opponent random --level-elo 1 2", "--level-elo"),
        ("openings --game duo_official", "--out and one of --engine and --book"),
        ("openings --game santorini --engine true --out f", "moves that"),
        ("train --list --resume", "--resume"),
        ("train --out run --set evaluation.opponents=nosuch", "'nosuch'"),
        ("train --out run --set replay.records=nowhere", "replay.records: nowhere"),
        ("train --out run --set evaluation.value_games=nowhere", "evaluation.value_games: nowhere"),
        ("train --out run --set evaluation.eval_opening=1000", "eval_opening"),
        ("train --out run --set selfplay.num_games=2000000000", "selfplay.num_games"),
        ("train --out run --set optimizer.learning_rate=inf", "optimizer.learning_rate"),
        ("train --out run --set max_minutes=nan", "max_minutes must be"),
        ("train --out run --preset nosuch.py", "nosuch.py"),
        ("train --out run --set selfplay.opponent=random", "selfplay.opponent_fraction"),
        (f"train --out run --set selfplay.opponent={HOST} selfplay.opponent_fraction=1", "that decides"),
        ("analyze --agent one_ply --game santorini", "one_ply"),
        ("analyze --agent nosuch", "'nosuch'"),
        ("analyze --agent puct:num_simulations=1000000000", "GB"),
        ("analyze --game duo --agent puct:network=santorini", "santorini"),
        (f"analyze --batch {10**12}", "--batch"),
        ("analyze --score-playouts -1", "--score-playouts"),
        ("rate nosuch --mistakes 0", "--mistakes must be positive"),
        ("rate nosuch --out /no/such/folder/file", "/no/such/folder"),
        ("rate /dev/zero", "/dev/zero"),
        ("show /dev/zero", "/dev/zero"),
        ("report /dev/zero", "/dev/zero"),
        ("render nosuch", "--out is needed"),
        ("value-test --game duo", "--games is needed"),
        ("value-test --game duo --games nosuch", "nosuch"),
        ("value-test --game duo --games f --plies 0", "--plies must be positive"),
        ("value-test --game duo --games f --positions 0", "--positions must be positive"),
        ("value-test --game duo --games f --seat 3", "--seat must be 1 to 2"),
        ("value-test --game duo --games f --network nosuch", "nosuch"),
        ("value-test --game duo --games f --network", "name sources by --network or --agents"),
        ("value-test --game duo --set size=6 --games f", "name sources by --network or --agents"),
        ("value-test --game duo --games f --agents random", "random has no values"),
        ("value-test --game duo --games f --agents puct puct", "2 sources have the name puct"),
    ],
    ids=lambda text: text[:60],
)
def test_arguments(command: str, message: str) -> None:
    rejects(run(*command.split()), message)


@pytest.mark.parametrize(
    "command",
    [
        "rollout --game santorini --set size=3 --games 4 --batch 4 --out f --seed -5",
        f"match random random {SMALL} --games 4 --opening 8",
        "match --game duo --set size=8 random puct:num_simulations=2 --games 4",
        "bench --batch 4 --seconds 0.1",
        "perft --depth 84",
    ],
)
def test_good_arguments_reach_their_work(command: str) -> None:
    assert run(*command.split()) == Outcome(None, "", "")


def test_rated_games_are_read_before_compilation() -> None:
    Path("f").write_text(f"{HEADER}\n{RECORD.replace('[]', '[30, 30]')}")
    rejects(run("rate", "f"), "f: game 1: move 2: action 30, O1n at a6, is illegal for yellow: ")
    rejects(run("rate", "f", "--number", "2"), "f: game 1: move 2")
    Path("f").write_text(f"{HEADER}\n{RECORD.replace('[]', '[30]')}")
    rejects(run("rate", "f", "--number", "2"), "--number must be 1 to 1, the games in f, not 2")
    rejects(run("rate", "f", "--agent", "random"), "random does not search")
    assert run("rate", "f") == Outcome(None, "", "")
    Path("f").write_text(HEADER)
    rejects(run("rate", "f"), "f: ")
    Path("f.blksgf").write_text("(;GM[Blokus Duo];W[e10])")
    rejects(run("rate", "f.blksgf"), "f.blksgf: game 1: move 1, W[e10]")


def test_initial_weights_are_read_before_compilation() -> None:
    for name, message in (("nosuch.npz", "No such file"), ("nosuch", "network.init 'nosuch': not found")):
        config = settings.changed(TrainConfig(), {"network.init": name})
        program = SimpleNamespace(game=config.game.make(), mesh=SimpleNamespace(devices=np.zeros(1)))
        with pytest.raises(ValueError, match=message):
            START(Run(config, Path("run"), cast(Program, program)))
        assert not Path("run").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[" * 100_000, "JSON"),
        (f"{HEADER}\n{'[' * 100_000}", "JSON"),
        (f"{HEADER}\n{RECORD.replace('null', '[' * 90 + ']' * 90)}", "JSON"),
        (f"{HEADER}\n{RECORD.replace('[0, 0]', f'[{DIGITS}, 0]')}", "JSON"),
        (f"{HEADER}\n{RECORD.replace('0.5, ', '9' * 400 + ', ')}", "lists of actions"),
        (f"{HEADER}\n{RECORD.replace('0.5, ', 'NaN, ')}", "lists of actions"),
        (f"{HEADER}\n{RECORD.replace('[0, 0]', '[2147483648, 0]')}", "lists of actions"),
        (f"{HEADER}\n{RECORD.replace('null', '7')}", "must be null"),
        (f'{HEADER}\n{RECORD[:-1]}, "players": [1, 2]}}', "players must"),
        (f"{HEADER}\n\n{RECORD}", "empty line"),
        (HEADER.replace('{"size": 6}', "[6]"), "line 1"),
        (HEADER.replace('"duo"', "[]"), "line 1"),
        (f"{HEADER}\n{'x' * (1 << 20)}y", "1,048,576"),
    ],
    ids=range(13),
)
def test_records(content: str, message: str) -> None:
    Path("f").write_text(content)
    for command in ("replay", "show", "rate"):
        rejects(run(command, "f"), message)


def test_records_with_a_mark_and_blank_last_lines() -> None:
    Path("f").write_text(f"\ufeff{HEADER}\n{RECORD}\n\n \n")
    game, games = tilewe_jax.records.read("f")
    assert (game.id, len(games)) == ("duo", 1)


def test_pipes_and_large_files_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo("pipe.npz")
    os.symlink("pipe.npz", "link")
    for command in ("replay link", "match --game santorini gumbel:network=pipe.npz random"):
        rejects(run(*command.split()), "it is a pipe or a device, not a regular file")
    monkeypatch.setattr("tilewe_jax.records.FILE_LIMIT", 3)
    Path("f").write_text(HEADER)
    rejects(run("replay", "f"), f"f: it has {len(HEADER)} bytes; at most 3 are read")


class Canary:
    """Unpickling an instance creates a folder."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("canary",)


def _about(**changes: Any) -> dict[str, Any]:
    about = {"format": 2, "game": "santorini", "options": {}, "architecture": "resnet", "size": "nano", "score_weight": 0.0}
    return {**about, "game_version": 1, **changes}


@pytest.mark.parametrize(
    ("members", "about", "message"),
    [
        ({}, [1], "JSON"),
        ({}, "[" * 9000, "nested too"),
        ({}, {"config": []}, "bad.npz"),
        ({}, _about(size=["nano"]), "architecture and"),
        ({}, _about(options=[1]), "architecture and"),
        ({}, _about(game=3), "architecture and"),
        ({}, _about(options={"size": HUGE}), "10"),
        ({}, _about(size="vast"), "network.size"),
        ({}, _about(architecture="none"), "network.architecture 'none'"),
        ({}, _about(score_weight="x"), "score_weight"),
        ({}, _about(score_weight=float("nan")), "score_weight"),
        ({}, _about(format=3), "has format"),
        ({"w0.npy": npy(np.full(SHAPE, np.nan, np.float16))}, None, "values that"),
        ({"w0.npy": npy(np.full(SHAPE, 1e300))}, None, "values that"),
        ({"w0.npy": npy(np.zeros(SHAPE, np.complex64))}, None, "has dtype complex64"),
        ({"w0.npy": npy(np.zeros(SHAPE, np.int8))}, None, "has dtype int8"),
        ({"w0.npy": npy(np.zeros(SHAPE, "U2"))}, None, "has dtype <U2"),
        ({"w0.npy": npy(np.zeros(SHAPE, "f4,f4"))}, None, "has dtype [('f0'"),
        ({"w0.npy": npy(np.array([Canary()]), allow_pickle=True)}, None, "has shape (1,)"),
        ({"about.npy": npy(np.array(Canary()), allow_pickle=True)}, None, "has dtype object"),
        ({"w0.npy": pickle.dumps(Canary())}, None, "w0"),
        ({"w0.npy": header((10**15,))}, None, "has shape (1000000000000000,)"),
        ({"w0.npy": header(SHAPE) + b"\0" * 9}, None, "array w0"),
        ({"w0.npy": header((-3, -3, *SHAPE[2:])) + b"\0" * (2 * math.prod(SHAPE))}, None, "has shape (-3, -3, "),
        ({"w0.npy": header("((" * 3000)}, None, "array w0"),
        ({"w0.npy": npy(np.zeros(2_000_000, np.float16))}, None, "has shape (2000000,)"),
        ({"w0.npy": None}, None, f"it holds {COUNT - 1} arrays"),
        ({"w0.npy": None, "x.npy": b""}, None, "'w0.npy'"),
        ({"more.npy": b""}, None, f"it holds {COUNT + 1} arrays"),
    ],
    ids=range(29),
)
def test_weights(members: dict[str, bytes | None], about: Any, message: str) -> None:
    rewritten(SHIPPED, Path("bad.npz"), members, about)
    rejects(run("match", "--game", "santorini", "gumbel:network=bad.npz", "random"), message)
    assert not Path("canary").exists()


def test_damaged_archives() -> None:
    shipped = SHIPPED.read_bytes()
    for content, message in (
        (b"", "is not"),
        (pickle.dumps(Canary()), "is not"),
        (shipped[:-100], "is not"),
        (shipped[100:], "of weights"),
        (shipped[:-12] + b"\xff\xff\xff\x7f" + shipped[-8:], "of weights"),
        (shipped[:-10] + b"\xff\xff\xff\x7f" + shipped[-6:], "many arrays"),
        (shipped[:300] + b"????" + shipped[304:], "of weights"),
    ):
        Path("bad.npz").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            weights.read(tilewe_jax.make("santorini"), Path("bad.npz"))
    assert not Path("canary").exists()


def test_a_zip_bomb_is_not_unpacked() -> None:
    """A member that would unpack to two gigabytes is not decompressed."""
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
    for content, message in ((b"", "./net"), (pickle.dumps(Canary()), "./net")):
        Path("net").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            exported.load(game, "./net")
    with pytest.raises(ValueError, match="pipe or"):
        exported.load(game, "./pipe")
    assert not Path("canary").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "config.json"),
        ("{", "config.json"),
        ("[" * 100_000, "nested too deeply"),
        ('{"game": 3}', "game"),
        ('{"game": {"id": 3}}', "network.architecture is missing"),
        ('{"game": {"id": "duo", "options": 3}}', "settings of"),
        ('{"nothing": 1}', "settings of"),
    ],
)
def test_config_json(content: str, message: str) -> None:
    Path("run").mkdir()
    Path("run/config.json").write_text(content)
    rejects(run("report", "run"), message)
    for command in ("match --run run", "train --out run --resume"):
        outcome = run(*command.split())
        assert outcome.is_one_line
        assert "run/config.json" in outcome.err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": HUGE}, "seed must"),
        ({"max_minutes": float("inf")}, "max_minutes"),
        ({"evaluation": {"opponents": 3}}, "evaluation.opponents"),
        ({"evaluation": {"opponents": [3]}}, "evaluation.opponents"),
        ({"evaluation": {"gate": [0]}}, "evaluation.gate"),
        ({"evaluation": {"gate": ["a", "b"]}}, "evaluation.gate must be"),
        ({"selfplay": {"search": {"candidate_pool": "many"}}}, "candidate_pool"),
        ({"selfplay": {"search": {"num_simulations": HUGE}}}, "num_simulations"),
        ({"selfplay": {"rule": ["puct"]}}, "selfplay.rule"),
        ({"game": {"options": 3}}, "game.options"),
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
        rejects(run("report", "run"), "run")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1/0", "ZeroDivisionError"),
        ("\n\nraise SystemExit(0)", "SystemExit: 0 (preset.py, line 3)"),
        ("CONFIG = (", "(preset.py"),
        ("\0", "preset.py"),
        ("import nosuch", "No module named 'nosuch'"),
        ("CONFIG = 3", "preset.py"),
        (
            "from tilewe_jax.training.config import *\nCONFIG = TrainConfig(iterations=0)",
            "0 (preset.py",
        ),
    ],
    ids=range(7),
)
def test_presets(code: str, message: str) -> None:
    Path("preset.py").write_text(code)
    rejects(run("train", "--out", "run", "--preset", "preset.py"), message)


def test_user_code_that_raises() -> None:
    Path("raises_at_once.py").write_text("def make(*game): 1/0\n")
    Path("has_an_error.py").write_text("def make(\n")
    Path("exits.py").write_text("import sys; sys.exit()\n")
    for module, message in (("raises_at_once", "division by zero"), ("has_an_error", "never closed"), ("exits", "SystemExit")):
        for command in (
            "rollout --game {}",
            "match --game duo random {}",
            "match --game duo random puct:network={}",
        ):
            rejects(run(*command.format(f"{module}:make").split()), message)


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
    rejects(run(*f"rollout {SMALL} --games 4 --out loop".split()), "cannot write loop: Too many levels of symbolic links")
    rejects(run(*f"rollout {SMALL} --games 4 --out folder".split()), "it is a folder")


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
