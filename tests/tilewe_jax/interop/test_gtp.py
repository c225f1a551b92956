"""The engine side of GTP: the protocol, its commands, and invalid lines."""

import io
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tilewe_jax.formats.names import GTP_GAMES, GtpGame, gtp_game, gtp_game_of_name
from tilewe_jax.formats.santorini import santorini_game
from tilewe_jax.games.santorini.host import SantoriniBoard
from tilewe_jax.interop.gtp import (
    LINE_LIMIT,
    GtpError,
    GtpSession,
    LastSearch,
    SearchedMove,
    format_response,
    parse_command,
    seconds_per_move,
    serve,
)


class Lowest:
    """An agent that plays the lowest legal action, or an illegal one."""

    name = "lowest"

    def __init__(self, game: GtpGame) -> None:
        if game.host.id == "tilewe":
            raise GtpError("lowest does not play tilewe")
        self.game = game
        self.start = game.start()
        self.illegal = False
        self.seconds: float | None = None
        self.seed = 0

    def choose(self, actions: Sequence[int]) -> int:
        if self.illegal:
            return -5
        position = self.start
        for action in actions:
            position = position.after(action)
        return position.legal_actions()[0]

    def new_game(self, deal: Any = None) -> None:
        self.start = self.game.start() if deal is None else self.game.host.init_from_deal(deal)

    def set_time(self, seconds: float | None) -> None:
        self.seconds = seconds

    def set_seed(self, seed: int) -> None:
        self.seed = seed


class Driver:
    """A session, with checks of the marks of its answers."""

    def __init__(self, name: str, agent: type[Lowest] = Lowest, **options: Any) -> None:
        self.agents: list[Lowest] = []
        self.log: list[str] = []
        self._kind = agent
        self.session = GtpSession(gtp_game(name, **options), self._agent, "1", log=self.log.append)

    def _agent(self, game: GtpGame) -> Lowest:
        self.agents.append(self._kind(game))
        return self.agents[-1]

    def ok(self, line: str) -> str:
        answer = self.session.answer(line)
        assert answer.startswith("="), answer
        assert answer.endswith("\n\n")
        return answer[1:].removeprefix(" ")[:-2]

    def fails(self, line: str) -> str:
        answer = self.session.answer(line)
        assert answer.startswith("? "), answer
        assert answer.endswith("\n\n")
        assert answer.count("\n") == 2
        return answer[2:-2]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", None),
        ("   \t\r\n", None),
        ("# play b a1", None),
        ("name", ("", "name", ())),
        ("  7\tplay b\te10,f10 # why\r\n", ("7", "play", ("b", "e10,f10"))),
        ("pl\x01ay\x7f b", ("", "play", ("b",))),
        ("12", ("12", "", ())),
        ("1x 2", ("", "1x", ("2",))),
        ("²3 x", ("", "²3", ("x",))),
    ],
)
def test_lines_are_parsed(line: str, expected: tuple[str, str, tuple[str, ...]] | None) -> None:
    command = parse_command(line)
    assert (command and (command.id, command.name, command.arguments)) == expected


def test_responses_end_with_their_only_empty_line() -> None:
    assert format_response("", "") == "= \n\n"
    assert format_response("3", "") == "=3 \n\n"
    assert format_response("", "a\n\nb\n") == "= a\n \nb\n\n"
    assert format_response("9", "no", success=False) == "?9 no\n\n"


def test_time_settings_give_seconds_a_move() -> None:
    assert seconds_per_move(0, 1, 0, 21) is None
    assert seconds_per_move(0, 10, 5, 21) == 2
    assert seconds_per_move(42, 0, 0, 21) == 2
    assert seconds_per_move(0, 0, 0, 21) == 0


def test_commands_of_administration() -> None:
    engine = Driver("duo_official")
    assert engine.ok("name") == "tilewe-jax"
    assert engine.ok("version") == "1"
    assert engine.ok("protocol_version") == "2"
    names = engine.ok("list_commands").split("\n")
    assert {"play", "genmove", "quit", "time_settings"} <= set(names)
    assert {engine.ok(f"known_command {name}") for name in names} == {"true"}
    assert engine.ok("known_command komi") == "false"
    assert engine.session.answer("5 name") == "=5 tilewe-jax\n\n"
    assert engine.session.answer("5 nome") == "?5 unknown command nome\n\n"
    assert engine.session.answer("5") == "?5 unknown command\n\n"
    assert engine.ok("time_settings 0 10 5") == ""
    assert engine.agents[0].seconds == 2
    assert engine.ok("time_settings 0 1 0") == ""
    assert engine.agents[0].seconds is None
    assert "seconds must be" in engine.fails("time_settings nan 1 1")
    assert engine.ok("set_random_seed 17") == ""
    assert engine.agents[0].seed == 17
    assert float(engine.ok("cputime")) > 0


class Searching(Lowest):
    """``Lowest`` with the report of a search."""

    def __init__(self, game: GtpGame) -> None:
        super().__init__(game)
        self.searched: LastSearch | None = None
        self.parameters = {"num_simulations": "64", "priors": "true", "c_init": "1.25"}

    def choose(self, actions: Sequence[int]) -> int:
        action = super().choose(actions)
        self.searched = LastSearch(0.25, (SearchedMove(action, 5, 0.5), SearchedMove(action, 2, 0.125)))
        return action

    def last_search(self) -> LastSearch | None:
        return self.searched


def test_commands_of_pentobi_about_a_search() -> None:
    engine = Driver("duo_official", agent=Searching)
    for command in ("get_value", "move_values"):
        assert "genmove" in engine.fails(command)
    move = engine.ok("genmove b")
    assert engine.ok("get_value") == "0.250000"
    assert engine.ok("move_values").split("\n") == [f"5 5.0 0.500 {move}", f"2 2.0 0.125 {move}"]
    assert engine.ok("param").split("\n") == ["num_simulations 64", "priors true", "c_init 1.25"]
    for same in ("num_simulations 64", "num_simulations 64.0", "priors 1", "priors true", "c_init 1.250"):
        assert engine.ok(f"param {same}") == ""
    assert engine.fails("param num_simulations 65").startswith("num_simulations is fixed")
    assert engine.fails("param priors 0").startswith("priors is fixed")
    assert "num_simulations, priors, c_init" in engine.fails("param use_book 0")
    engine.fails("param c_init")
    plain = Driver("duo_official")
    for command in ("get_value", "move_values", "param"):
        assert plain.fails(command).startswith("lowest ")
    assert plain.ok("param_base") == "accept_illegal 0\nresign 0"
    assert plain.ok("param_base resign 0") == plain.ok("param_base accept_illegal 0") == ""
    assert plain.fails("param_base resign 1").startswith("resign is fixed")
    assert "'nosuch'" in plain.fails("param_base nosuch 1")


def test_moves_are_described_as_pentobi_does() -> None:
    engine = Driver("duo_official")
    assert engine.ok("move_info F10,e10").split("\n") == [
        "",
        "ID:     522",
        "Piece:  1 (I2)",
        "Points: e10 f10",
        "BrkSym: 0",
        "SymMv:  i5,j5",
    ]
    assert engine.ok("move_info 522") == engine.ok("move_info e10,f10")
    assert engine.ok("move_info g7,h7,g8,h8").endswith("BrkSym: 1\nSymMv:  g7,h7,g8,h8")
    for move in ("x", "999999", "pass"):
        assert move in engine.fails(f"move_info {move}")
    assert "santorini" in Driver("santorini").fails("move_info c3")


def test_get_place_ranks_players() -> None:
    engine = Driver("classic_2")
    assert {engine.ok(f"get_place {color}") for color in "1234"} == {"1 shared"}
    while engine.ok("g") != "pass":
        pass
    first, second = engine.session._position.scores()
    places = ["1", "2"] if first > second else ["2", "1"] if second > first else ["1 shared"] * 2
    assert [engine.ok(f"get_place {color}") for color in "1234"] == places * 2
    assert "'b'" in engine.fails("get_place b")


def test_each_command_checks_its_number_of_arguments() -> None:
    engine = Driver("duo_official", agent=Searching)
    for name, (_, least, most) in engine.session._commands.items():
        for count in {least - 1, most + 1} - {-1}:
            words = " ".join(["b"] * count)
            assert f" got {count}" in engine.fails(f"{name} {words}".strip()), name
    assert not engine.session.is_over


def test_a_game_of_two_colors() -> None:
    engine = Driver("duo_official")
    assert engine.ok("boardsize 14") == ""
    assert engine.fails("boardsize 19") == "unacceptable size"
    assert len(engine.ok("all_legal b").split("\n")) == 414
    for line, part in (
        ("play b a1", "action 0, O1n at a1, is illegal for blue: "),
        ("play w j5", "turn of b"),
        ("play x j5", "'x'"),
        ("play b pass", "pass"),
        ("play b e10,e10", "'e10,e10'"),
        ("play b e10,g10", "'e10,g10'"),
    ):
        assert part in engine.fails(line)
    assert engine.ok("play BLACK F10, e10") == ""
    assert engine.ok("all_legal w").startswith("j5")
    assert engine.ok("reg_genmove w") == "j5"
    assert engine.ok("genmove w") == "j5"
    assert engine.ok("final_score") == "B+1"
    assert "turn of b" in engine.fails("genmove w")
    assert engine.ok("undo") == engine.ok("undo") == ""
    engine.fails("undo")
    moves = 0
    while (move := engine.ok("g")) != "pass":
        moves += 1
        assert move
    assert moves == len(engine.session.actions) > 20
    assert engine.ok("genmove b") == engine.ok("genmove w") == "pass"
    assert "is over" in engine.fails("play b a1")
    assert engine.ok("showboard").startswith("\n14 ")
    assert "game over" in engine.ok("showboard")
    assert engine.ok("clear_board") == ""
    assert engine.ok("p e10") == ""
    assert engine.ok("quit") == ""
    assert engine.session.is_over


def test_four_colors_and_other_games() -> None:
    engine = Driver("classic")
    assert engine.ok("play 1 a20") == ""
    assert engine.ok("play yellow t20") == ""
    assert engine.ok("final_score") == "1 1 0 0"
    assert engine.ok("time_settings 42 0 0") == ""
    assert engine.ok("set_game Blokus Duo") == ""
    assert engine.session.game.host.id == "duo_official"
    assert engine.ok("set_game blokus duo") == ""
    assert [agent.seconds for agent in engine.agents] == [2, 2]
    assert len(engine.agents) == 2, "the agent of a game is reused"
    assert "'Blokus Trigon'" in engine.fails("set_game Blokus Trigon")
    assert engine.fails("set_game tilewe") == "lowest does not play tilewe"
    assert engine.ok("play b e10") == "", "a failed set_game changes nothing"


def test_two_colors_of_a_player() -> None:
    engine = Driver("classic")
    assert engine.ok("set_game Blokus Two-Player") == ""
    assert engine.session.game.host.id == "classic_2"
    assert "turn of 1" in engine.fails("play 3 t1")
    assert "1 2 3 4" in engine.fails("play b a20")
    for color, move in (("blue", "a20"), ("2", "t20"), ("red", "t1,t2"), ("4", "a1")):
        assert engine.ok(f"play {color} {move}") == ""
    assert engine.ok("final_score") == "B+1"
    assert len(engine.ok("all_legal 3").split("\n")) > 58
    assert engine.ok("reg_genmove 1") == engine.ok("all_legal 1").split("\n")[0]
    turns = []
    while (move := engine.ok("g")) != "pass":
        turns.append(move)
    position = engine.session._position
    margin = position.scores()[0] - position.scores()[1]
    assert engine.ok("final_score") == (f"{'B' if margin > 0 else 'W'}+{abs(margin)}" if margin else "0")
    assert {engine.ok(f"genmove {color}") for color in range(1, 5)} == {"pass"}
    assert len(turns) + 4 == len(engine.session.actions)


def test_a_game_of_santorini() -> None:
    engine = Driver("santorini")
    assert engine.ok("boardsize 5") == ""
    assert engine.fails("boardsize 4") == "unacceptable size"
    assert len(engine.ok("all_legal b").split("\n")) == 68
    assert "turn of b" in engine.fails("all_legal w")
    assert "turn of b" in engine.fails("genmove w")
    assert "worker -1" in engine.fails("play b c4-b3*c3")
    for move in ("c3-b2", "c4-d4*f9", "c4", "pass", "e10,f10", "c4d4e3", "a99-b1*c1", "-1-2*3"):
        assert f"{move!r}: " in engine.fails(f"play b {move}")
    assert "'3'" in engine.fails("play 3 c4-d4*e3")
    assert engine.ok("play Blue C4-D4 *e3") == ""
    assert engine.session._position.text() == SantoriniBoard.start().push("c4-d4*e3").text()
    move = engine.ok("reg_genmove w")
    assert move in engine.ok("all_legal w").split("\n")
    assert engine.ok("genmove w") == move
    assert "santorini" in engine.fails("savesgf x")
    assert engine.ok("final_score") == "0"
    assert engine.ok("time_settings 100 0 0") == ""
    assert engine.agents[0].seconds == 2
    assert engine.ok("set_game Santorini") == ""
    assert engine.session.actions == ()
    assert engine.ok("set_game Blokus Duo") == engine.ok("set_game santorini") == ""
    assert engine.session.game.host.id == "santorini"
    assert "santorini" in engine.fails("set_game chess")


@pytest.mark.parametrize("placement", ["default", "chosen"])
def test_random_games_of_santorini_follow_the_host_board(placement: str) -> None:
    rng = random.Random(1)
    engine = Driver("santorini", placement=placement)
    position = SantoriniBoard.start(5, placement)  # type: ignore[arg-type]
    while not position.is_terminal:
        color = "bw"[position.current_player]
        names = [position.action_name(action) for action in position.legal_actions()]
        assert engine.ok(f"all_legal {color}").split("\n") == names
        if rng.random() < 0.2:
            assert (move := engine.ok("g")) == names[0]
        else:
            engine.ok(f"play {color} {(move := rng.choice(names))}")
        position = position.push(move)
    assert engine.session._position == position
    assert engine.ok("final_score") == ("B+1" if position.winner == 1 else "W+1")
    assert engine.ok("all_legal b") == engine.ok("all_legal w") == ""
    for line in ("g", "genmove b", "genmove w"):
        assert "is over" in engine.fails(line)
    assert "wins" in engine.ok("showboard")
    assert engine.ok("undo") == ""
    assert engine.session._position.text() != position.text()


def test_moves_that_place_workers_encode_a_deal_of_santorini() -> None:
    names = santorini_game(placement="random")
    initial = SantoriniBoard.from_deal(names.config, [[0, 0], [4, 1], [2, 2], [3, 4]])
    position, texts = names.start(), []
    for action in names.deal_actions(initial):
        texts.append(names.move_text(action, position))
        position = position.after(action)
    assert texts == ["a5", "c3", "b1", "e2"], "workers 1, -1, 2, -2"
    assert position == initial
    assert not santorini_game().deal_actions(initial)
    with pytest.raises(ValueError, match="GTP"):
        gtp_game("triominos")
    assert {gtp_game_of_name(gtp_game(name).name).host.id for name in GTP_GAMES} == set(GTP_GAMES)


def test_voluntary_passes() -> None:
    engine = Driver("duo", voluntary_pass=True)
    assert engine.ok("play b pass") == ""
    assert engine.ok("genmove b") == "pass"
    assert engine.ok("genmove w") != "pass"


def test_errors_of_the_agent() -> None:
    engine = Driver("duo_official")
    engine.agents[0].illegal = True
    assert engine.fails("genmove b").startswith("lowest chose an illegal action, -5: ")
    engine.agents[0].choose = None  # type: ignore[assignment, method-assign]
    assert engine.fails("genmove b").startswith("TypeError")


def test_files_of_pentobi(tmp_path: Path) -> None:
    engine, file = Driver("duo_official"), tmp_path / "game.blksgf"
    for move in ("e10,f10", "j5", "g9"):
        engine.ok(f"p {move}")
    assert engine.ok(f"savesgf {file}") == ""
    actions = engine.session.actions
    classic = Driver("classic")
    assert classic.ok(f"loadsgf {file}") == ""
    assert classic.session.actions == actions
    assert classic.ok(f"loadsgf {file} 3") == ""
    assert classic.session.actions == actions[:2]
    assert classic.fails(f"loadsgf {file}.none") == f"{file}.none: No such file or directory"
    assert f"{tmp_path}/none" in classic.fails(f"savesgf {tmp_path}/none/x")
    for number in (0, 5):
        assert f"1 to 4, got {number}" in classic.fails(f"loadsgf {file} {number}")
    assert classic.session.actions == actions[:2]
    assert classic.log == []
    (tmp_path / "x.SGF").write_text("(;GM[Blokus Duo]C[x];B[e10](;W[j5])(;W[i5,j5]))(;GM[Blokus])")
    assert classic.ok(f"loadsgf {tmp_path}/x.SGF") == ""
    assert len(classic.session.actions) == 2
    for line, part in zip(classic.log, ("first of 2", "1 variation, 1 comment"), strict=True):
        assert part in line
    file.write_text("(;B[a1])")
    assert "game" in classic.fails(f"loadsgf {file}")


def test_serving_ends_with_quit_and_with_the_input() -> None:
    for text, expected in (
        (b"name\n#\n\nquit\nname\n", b"= tilewe-jax\n\n= \n\n"),
        (b"1 name", b"=1 tilewe-jax\n\n"),
        (b"x" * (3 * LINE_LIMIT) + b"\nname\n", b"? a command must have at most 65,536 bytes\n\n= tilewe-jax\n\n"),
        (b"\xff\x00\n", "? unknown command \N{REPLACEMENT CHARACTER}\n\n".encode()),
    ):
        out = io.BytesIO()
        serve(Driver("duo_official").session, io.BytesIO(text), out)
        assert out.getvalue() == expected


@pytest.mark.parametrize("name", ["duo_official", "santorini"])
def test_random_lines_get_one_answer_each(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of protocol words and noise: each command gets one answer, and the game remains legal."""
    monkeypatch.chdir(tmp_path)  # savesgf writes files
    rng = random.Random(0)
    engine = Driver(name)
    words = [
        *engine.ok("list_commands").split(),
        *["b", "w", "1", "blue", "e10", "j5", "e10,f10", "pass", "Blokus", "Duo", "14", "-1", "1e999", "#", "3"],
        *["santorini", "5", "c4-d4*e3"],
    ]
    words.remove("quit")
    answered = 0
    for _ in range(3_000):
        if rng.random() < 0.3 and not engine.session._position.is_terminal:
            color = engine.session._color()
            legal = engine.session._position.legal_actions()
            move = engine.session.game.move_text(rng.choice(legal), engine.session._position)
            line = rng.choice(("play", "p", "genmove")) + f" {color} {move}"
        elif rng.random() < 0.5:
            line = " ".join(rng.choices(words, k=rng.randrange(6)))
        else:
            line = "".join(chr(rng.choice((rng.randrange(128), rng.randrange(0x10000)))) for _ in range(rng.randrange(40)))
        answer = engine.session.answer(line)
        assert bool(answer) == (parse_command(line) is not None)
        if answer:
            answered += 1
            assert answer[0] in "=?"
            assert answer.endswith("\n\n")
            assert "\n\n" not in answer[:-2]
            answer.encode("utf-8", "replace")
    assert answered > 2_400
    position = gtp_game_of_name(engine.session.game.name).start()
    for action in engine.session.actions:
        position = position.after(action)


def test_games_start_from_positions(tmp_path: Path) -> None:
    driver = Driver("duo_official")
    facts = {"placed": {"blue": ["e10,f10"], "yellow": ["j5"]}, "current_color": "yellow"}
    assert driver.ok(f"set_position {json.dumps(facts)}") == ""
    assert json.loads(driver.ok("get_position"))["placed"] == facts["placed"]
    assert driver.fails("play b g9").endswith("it is the turn of w")
    driver.ok("play w k6,k7")
    first = driver.ok("genmove b")
    path = tmp_path / "game.blksgf"
    driver.ok(f"savesgf {path}")
    assert "AB[e10,f10]AW[j5]PL[W];W[k6,k7]" in path.read_text().replace(chr(10), "")
    before = driver.ok("get_position")
    driver.ok("clear_board")
    assert json.loads(driver.ok("get_position"))["placed"] == {"blue": [], "yellow": []}
    driver.ok(f"loadsgf {path} 2")
    assert driver.ok("genmove b") == first
    assert driver.ok("get_position") == before
    driver.ok("undo")
    driver.ok("undo")
    assert "cannot undo" in driver.fails("undo")
    assert "a position must be a JSON object, got '{x'" in driver.fails("set_position {x")
    assert "a piece of blue must cover e10" in driver.fails(
        'set_position {"placed": {"blue": ["a1"]}, "current_color": "blue"}'
    )
    assert driver.ok("get_position") != before


def test_santorini_starts_from_the_notation_of_engines() -> None:
    driver = Driver("santorini")
    driver.ok("set_position 4101202110011400102000100/2/mortal:A3,C3/mortal:E4,A1")
    assert json.loads(driver.ok("get_position"))["current_player"] == 1
    assert driver.ok("genmove w").startswith(("e4-", "a1-"))
    assert "a position as text must be like" in driver.fails("set_position 00/1")
