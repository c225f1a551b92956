"""Analyses by searches, and rated games."""

import io
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import tilewe_jax
from tests.search.tictactoe import TicTacToe
from tests.tilewe_jax.cli.test_cli import run
from tilewe_jax import records
from tilewe_jax.agents import AgentSpec, agent, review
from tilewe_jax.agents.analysis import AgentAnalyzer, SearchProgram
from tilewe_jax.agents.levels import LEVELS
from tilewe_jax.agents.timed_search import MAX_PARTS
from tilewe_jax.cli import main as cli
from tilewe_jax.host import HostGame
from tilewe_jax.host_games import make_host_game
from tilewe_jax.interop import analysis
from tilewe_jax.interop.analysis import Analysis, AnalysisSession
from tilewe_jax.interop.analysis_requests import Defaults, GameSpec, Played, RequestError
from tilewe_jax.search.tree import ROOT

GAME = TicTacToe()
HOST = HostGame("tictactoe", 1, 2, 9, 9, lambda deal: GAME.host(GAME.init_from_deal(deal)))
AGENT = "puct:num_simulations=40,num_candidates=9,num_playouts=1,num_samples=1,priors=false,score_weight=0"
# The first player has a1 and b1, the second player a2 and b2; c1 wins.
WIN = (0, 3, 1, 4)


@pytest.fixture(scope="module")
def program() -> SearchProgram:
    return SearchProgram(agent(AGENT, GAME), batch=16, score_playouts=8)


@pytest.fixture(scope="module")
def positions(program: SearchProgram) -> dict[tuple[int, ...], Analysis]:
    played = [(), (0,), (4,), WIN, (0, 3, 1, 4, 2), (0, 1, 2, 4, 3, 5, 7, 6, 8)]
    return dict(zip(played, program.analyze([Played(None, actions) for actions in played]), strict=True))


def after(actions: tuple[int, ...]) -> Any:
    position = HOST.init_from_deal(None)
    for action in actions:
        position = position.after(action)
    return position


def test_visits_add_up_and_variations_are_legal(positions: dict[tuple[int, ...], Analysis]) -> None:
    for actions, report in positions.items():
        position = after(actions)
        visits = [candidate.visits for candidate in report.candidates]
        assert sum(visits) == report.num_simulations == (0 if position.is_terminal else 40)
        assert visits == sorted(visits, reverse=True)
        assert {candidate.action for candidate in report.candidates} == set(position.legal_actions())
        for candidate in report.candidates:
            assert candidate.variation[0] == candidate.action
            after((*actions, *candidate.variation))  # raises for an illegal action
            if candidate.value:
                assert sum(candidate.value) == pytest.approx(1, abs=1e-5)
        if visits:
            assert report.action == report.candidates[0].action
            assert sum(candidate.prior for candidate in report.candidates) == pytest.approx(1, abs=1e-5)
            assert len(report.candidates[0].variation) > 1 or actions == WIN


def test_a_won_game_has_value_1(positions: dict[tuple[int, ...], Analysis]) -> None:
    analysis = positions[WIN]
    assert (analysis.action, analysis.candidates[0].value, analysis.candidates[0].variation) == (2, (1.0, 0.0), (2,))
    assert analysis.score_lead == (1.0, -1.0), "scores are 1 for the winner"
    assert positions[0, 3, 1, 4, 2].value == pytest.approx((1, 0), abs=1e-6)
    assert positions[0, 3, 1, 4, 2].score_lead == (1.0, -1.0)
    draw = positions[0, 1, 2, 4, 3, 5, 7, 6, 8]
    assert (draw.action, draw.score_lead) == (-1, (0.0, 0.0))
    assert draw.value == pytest.approx((0.5, 0.5), abs=1e-6)


def test_results_do_not_depend_on_the_block(program: SearchProgram, positions: dict[tuple[int, ...], Analysis]) -> None:
    (alone,) = program.analyze([Played(None, (4,))])
    among = positions[4,]
    assert (alone.candidates, alone.value, alone.score_lead) == (among.candidates, among.value, among.score_lead)
    assert (alone.batch, among.batch) == (1, 6)


def test_analyses_agree_with_searches(positions: dict[tuple[int, ...], Analysis]) -> None:
    search = agent(AGENT + ",stop_early=false", GAME).search
    state = GAME.apply(GAME.init(jax.random.key(0)), jax.numpy.int32(4))
    output = jax.jit(search)(state, jax.random.fold_in(jax.random.key(0), 1))
    visits = {candidate.action: candidate.visits for candidate in positions[4,].candidates}
    assert visits == dict(zip(output.candidates[:8].tolist(), output.visits[:8].tolist(), strict=True))
    assert positions[4,].action == int(output.action)
    tree, line = output.tree, positions[4,].candidates[0].variation
    node = ROOT
    for action in line[1:]:
        node = int(tree.children[node, tree.candidates[node].tolist().index(line[line.index(action) - 1])])
        children = np.asarray(tree.children[node])
        counts = np.where(children >= 0, np.asarray(tree.visits)[children], 0)
        assert counts.max() == counts[tree.candidates[node].tolist().index(action)] > 0


def test_a_limit_of_time() -> None:
    for seconds, simulations in ((100.0, 40), (1e-9, 40 // MAX_PARTS)):
        limited = SearchProgram(agent(AGENT, GAME), seconds, score_playouts=0)
        (report,) = limited.analyze([Played(None, WIN)])
        assert (report.num_simulations, report.action, report.score_lead) == (simulations, 2, None)
    with pytest.raises(ValueError, match="max_seconds"):
        SearchProgram(agent("gumbel", tilewe_jax.make("triominos")), 1.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_seconds": 0}, "max_seconds"),
        ({"max_seconds": float("nan")}, "max_seconds"),
        ({"max_seconds": True}, "max_seconds"),
        ({"network": "os:getcwd"}, "network"),
        ({"stop_early": True}, "stop_early"),
        ({"num_simulations": 2.5}, "num_simulations"),
        ({"num_simulations": [1]}, "num_simulations"),
        ({"num_simulations": 10**9}, "at most 0"),
        ({"priors": 7}, "priors"),
        ({"nosuch": 1}, "'nosuch=1'"),
        ({"playout_policy": "nosuch"}, "'nosuch'"),
        ({"agent": "gumbel:network=secret.npz"}, "agent.*secret"),
        ({"agent": "level:99"}, "level"),
        ({"agent": ["puct"]}, "agent"),
    ],
    ids=str,
)
def test_invalid_settings_of_a_request(settings: dict[str, Any], message: str) -> None:
    spec = GameSpec(make_host_game("duo", size=5), {"size": 5})
    with pytest.raises((ValueError, MemoryError), match=message):
        AgentAnalyzer(AGENT).prepare(spec, settings)


def test_max_visits_counts_all_trees() -> None:
    analyzer = AgentAnalyzer(AGENT, others=["best", "puct:num_determinizations=2"])
    duo, triominos = (
        GameSpec(make_host_game(name, **options), options) for name, options in (("duo", {"size": 5}), ("triominos", {}))
    )
    assert analyzer.prepare(duo, {"max_visits": 9}) is analyzer.prepare(duo, {"num_simulations": 9})
    assert analyzer.prepare(triominos, {"max_visits": 9}).spec.search.num_simulations == 2, "four trees"
    with pytest.raises(ValueError, match="max_visits"):
        analyzer.prepare(triominos, {"max_visits": 3})
    with pytest.raises(ValueError, match="max_visits"):
        analyzer.prepare(duo, {"max_visits": "x"})
    assert [model["name"] for model in analyzer.models] == [AGENT, "best", "puct:num_determinizations=2"]
    json.dumps(analyzer.models)


def test_searches_are_kept() -> None:
    analyzer, spec = AgentAnalyzer(AGENT), GameSpec(make_host_game("duo", size=5), {"size": 5})
    first = analyzer.prepare(spec, {"c_init": 2})
    assert analyzer.prepare(spec, {"c_init": 2.0}) is first
    assert analyzer.prepare(spec) is not first
    assert first.spec.rule.c_init == 2  # type: ignore[union-attr]


def test_agents_of_requests() -> None:
    analyzer = AgentAnalyzer(AGENT, 4, ["gumbel:num_simulations=8"], score_playouts=0)
    duo, santorini = GameSpec(make_host_game("duo", size=5), {"size": 5}), GameSpec(make_host_game("santorini"), {})
    gumbel = analyzer.prepare(duo, {"agent": "gumbel:num_simulations=8"})
    assert str(gumbel.spec).startswith("gumbel:num_simulations=8")
    assert analyzer.prepare(duo, {"agent": "gumbel:num_simulations=8", "num_simulations": 9}).spec != gumbel.spec
    level = analyzer.prepare(santorini, {"agent": "level:2"}).spec
    assert level.search.num_simulations == AgentSpec.parse(LEVELS["santorini"][1].agent).search.num_simulations


def test_the_seed_of_a_request() -> None:
    """Sampled moves depend on the seed, not on the block; 0 means the seed of the analyzer."""
    weak = agent(f"{AGENT},value_temperature=1.0", GAME)
    program = SearchProgram(weak, batch=16, score_playouts=0)
    seeds = [0, 1, 2, 3, 4, 5, 6, 7, 1]
    together = program.analyze([Played(None, (), seed) for seed in seeds])
    actions = [analysis.action for analysis in together]
    assert len(set(actions)) > 1
    assert actions[1] == actions[-1]
    alone = SearchProgram(weak, batch=1, score_playouts=0)
    assert alone.analyze([Played(None, ())])[0].action == actions[0]


class Fog(TicTacToe):
    """Tic-tac-toe as a game with hidden information, in which nothing is hidden."""

    has_hidden_information = True

    def determinize(self, state: Any, player: Any, key: Any) -> Any:
        del player, key
        return state


@pytest.mark.parametrize("num_determinizations", [0, 3])
def test_hidden_information(num_determinizations: int) -> None:
    """Both searches report visits; variations are the candidate alone."""
    game = Fog()
    program = SearchProgram(agent(f"{AGENT},num_determinizations={num_determinizations}", game), score_playouts=4)
    (report,) = program.analyze([Played(None, WIN)])
    assert sum(item.visits for item in report.candidates) == report.num_simulations == 40 * max(1, num_determinizations)
    assert (report.action, report.candidates[0].value, report.score_lead) == (2, (1.0, 0.0), (1.0, -1.0))
    assert all(candidate.variation == (candidate.action,) for candidate in report.candidates)
    output = jax.jit(program.agent.search)(GAME.init_from_deal(None), jax.random.fold_in(jax.random.key(0), 0))
    (start,) = program.analyze([Played(None, ())])
    assert start.action == int(output.action)
    assert np.allclose(output.value, start.value, atol=1e-6)
    priors = dict(zip(output.candidates.tolist(), output.prior_probs.tolist(), strict=True))
    assert {item.action: item.prior for item in start.candidates} == pytest.approx(priors, abs=1e-6)


@pytest.mark.slow
def test_hidden_tiles_do_not_change_an_analysis() -> None:
    game = tilewe_jax.make("triominos", tiles=10, tray=3)
    text = "puct:num_simulations=4,num_candidates=4,num_playouts=0,num_determinizations=1"
    program = SearchProgram(agent(text, game), score_playouts=0, batch=1)
    deal = game.deal(game.init(jax.random.key(1)))
    tiles, theirs = list(deal["tiles"]), 3 if deal["starter"] == 0 else 0
    tiles[theirs], tiles[9] = tiles[9], tiles[theirs]
    real, swapped = program.analyze([Played(deal, ()), Played({**deal, "tiles": tiles}, ())])
    assert (real.candidates, real.value, real.action) == (swapped.candidates, swapped.value, swapped.action)


def test_rated_games_agree_with_analyses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    game = tilewe_jax.make("duo", size=5, pieces=("O1", "I2", "L3"))
    host = make_host_game("duo", **game.options)
    position, actions = host.init_from_deal(None), []
    while not position.is_terminal:
        actions.append(position.legal_actions()[-1 if len(actions) % 2 else 0])
        position = position.after(actions[-1])
    scores = position.scores()
    returns = tuple(float(score == max(scores)) / scores.count(max(scores)) for score in scores)
    record = records.Record(None, tuple(actions), scores, returns, ("\x1b[2J", "b"))
    records.write(tmp_path / "games", game, [record, record])
    agent = "puct:num_simulations=12,num_candidates=16,num_playouts=0"
    out, options = tmp_path / "rated", ("--agent", agent, "--batch", "16", "--json")
    code, printed, err = run(capsys, "rate", str(tmp_path / "games"), *options, "--out", str(out))
    assert code == 0, err
    summary = json.loads(printed)
    assert (summary["games"], summary["moves"], summary["interrupted"]) == (2, 2 * len(actions), False)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["id"], row["turn"]) for row in rows] == [(game, turn) for game in (1, 2) for turn in range(len(actions))]

    session = AnalysisSession(Defaults("duo", game.options), AgentAnalyzer(agent, 16, score_playouts=0))
    requests = io.BytesIO(json.dumps({"id": 1, "moves": actions, "analyze_turns": list(range(len(actions) + 1))}).encode())
    answers = io.BytesIO()
    analysis.serve(session, requests, answers)
    analyses = [json.loads(line) for line in answers.getvalue().splitlines()]
    for row, answer, following in zip(rows[: len(actions)], analyses, analyses[1:], strict=False):
        played, mover = row["played"], answer["current_player"]
        same = ("turn", "current_player", "value", "candidates", "move", "scores", "num_simulations")
        assert {name: row[name] for name in same} == {name: answer[name] for name in same}
        visited = {item["action"]: item for item in answer["candidates"]}
        assert played["visits"] == (visited[played["action"]]["visits"] if played["action"] in visited else 0)
        assert (played["value_before"], played["value_after"]) == (answer["value"][mover], following["value"][mover])
        if played["action"] == answer["action"]:
            assert played["loss"] == 0
        else:
            best = visited[answer["action"]]["value"][mover]
            assert played["loss"] == pytest.approx(max(0, best - following["value"][mover]), abs=2e-6)

    losses = {0: [], 1: []}  # type: ignore[var-annotated]
    for row in rows:
        losses[row["played"]["player"]].append(row["played"]["loss"])
    means = {row["player"]: row["mean_loss"] for row in summary["players"]}
    assert means == {name: pytest.approx(np.mean(losses[seat]), abs=1e-5) for seat, name in ((0, "?[2J"), (1, "b"))}
    worst = max(loss for both in losses.values() for loss in both)
    assert summary["mistakes"][0]["loss"] == pytest.approx(worst, abs=1e-6)


def test_a_search_of_some_moves(program: SearchProgram) -> None:
    """The first player wins with c1 (action 2), and with nothing else."""
    legal = tuple(after(WIN).legal_actions())
    lists = [legal, tuple(action for action in legal if action != 2), (2,), (5, 8)]
    reports = program.analyze([Played(None, WIN, 0, allowed) for allowed in lists])
    for allowed, report in zip(lists, reports, strict=True):
        assert {candidate.action for candidate in report.candidates} == set(allowed)
        assert sum(candidate.visits for candidate in report.candidates) == report.num_simulations == 40
        assert report.action in allowed
    assert reports[0].action == reports[2].action == 2
    assert reports[2].value[0] > 0.9 > reports[3].value[0]
    mixed = program.analyze([Played(None, WIN, 0, (5, 8)), Played(None, WIN), Played(None, (), 0, (4,))])
    assert [report.action in allowed for report, allowed in zip(mixed, [(5, 8), (2,), (4,)], strict=True)] == [True] * 3


def test_of_many_moves_the_likeliest_are_searched() -> None:
    game = tilewe_jax.make("duo", size=6)
    program = SearchProgram(agent("puct:num_simulations=24,num_candidates=8,num_playouts=0", game), batch=4, score_playouts=0)
    legal = make_host_game("duo", size=6).init_from_deal(None).legal_actions()
    (free,) = program.analyze([Played(None, ())])
    assert len(legal) > 64  # more than the smallest list of allowed moves
    avoided = free.action
    (report,) = program.analyze([Played(None, (), 0, tuple(action for action in legal if action != avoided))])
    assert len(report.candidates) == 8
    assert avoided not in {candidate.action for candidate in report.candidates}
    assert sum(candidate.prior for candidate in report.candidates) == pytest.approx(1, abs=1e-4)


def test_ctrl_c_keeps_rated_games(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "game.blksgf"
    path.write_text("(;GM[Blokus Duo];B[e10])(;GM[Blokus Duo];B[e10])")
    calls = []

    def analyze(self: SearchProgram, positions: list[Played]) -> list[Analysis]:
        calls.append(len(positions))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return [Analysis(best(played), (), (0.5, 0.5), None, 0.0, 0, 0.0, 1) for played in positions]

    def best(played: Played) -> int:
        position = make_host_game("duo_official").init_from_deal(None)
        for action in played.actions:
            position = position.after(action)
        return position.legal_actions()[0]

    monkeypatch.setattr(SearchProgram, "analyze", analyze)
    out = tmp_path / "out"
    code, printed, err = run(capsys, "rate", str(path), "--batch", "2", "--out", str(out), "--json")
    assert (code, json.loads(printed)["games"], json.loads(printed)["interrupted"]) == (130, 1, True)
    assert err.splitlines()[-1] == "tilewe-jax: interrupted"
    assert len(out.read_text().splitlines()) == 1
    out.unlink()
    del calls[1:]
    code, printed, _ = run(capsys, "rate", str(path), "--batch", "2", "--out", str(out), "--json")
    assert (code, printed, out.exists()) == (130, "", False)


def test_illegal_moves_in_files_are_rejected() -> None:
    spec = GameSpec(HOST, {})
    with pytest.raises(RequestError, match="illegal"):
        review.RecordedGame(1, spec, None, (0, 0), ()).request()


def test_the_command_reads_standard_input(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "requests").write_text('{"id": 1, "action": "query_version"}\n')
    with (tmp_path / "requests").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        cli.main(["analyze", "--game", "duo", "--set", "size=5"])
    answer = json.loads(capfdbinary.readouterr().out)
    assert (answer["id"], answer["action"]) == (1, "query_version")
