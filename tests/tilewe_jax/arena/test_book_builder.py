"""Construction of opening books."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import tilewe_jax
from tests.bad_inputs import run
from tests.tilewe_jax.agents.symmetric_tictactoe import SymmetricTicTacToe
from tilewe_jax import agents
from tilewe_jax.agents import book as books
from tilewe_jax.agents.book import Book
from tilewe_jax.arena import openings
from tilewe_jax.arena.book_builder import BookBuilder, BookSettings, open_book

GAME = SymmetricTicTacToe()
AGENT = "puct:num_simulations=9,num_candidates=9,num_playouts=1,num_samples=1,priors=false,score_weight=0"


def builder(book: Book | None = None, **settings: Any) -> BookBuilder:
    return BookBuilder(agents.agent(AGENT, GAME), book or Book(GAME), BookSettings(**settings))


def negamax(position: Any, known: dict[str, float]) -> float:
    """Return the exact value for the player to move."""
    if position.text() not in known:
        mover = position.current_player
        if position.is_terminal:
            scores = position.scores()
            known[position.text()] = 0.5 + (scores[mover] - scores[1 - mover]) / 2
        else:
            known[position.text()] = max(1 - negamax(position.after(action), known) for action in position.legal_actions())
    return known[position.text()]


def test_a_book_of_all_positions_has_exact_values() -> None:
    complete = builder(plies=9, full_plies=9, searches=1, batch=64)
    assert sum(complete.extend()) == len(complete.book.positions) == 627, "the positions up to symmetry without finished games"
    assert complete.wanted() == []
    known: dict[str, float] = {}
    for key, moves in complete.book.evaluated().items():
        position = GAME.host(GAME.init(jax.random.key(0)))
        for action in complete.book.positions[key].actions:
            position = position.after(action)
        assert moves[0].value[position.current_player] == negamax(position, known)
        assert moves[0].error == 0


def test_interrupted_construction_equals_one_run(tmp_path: Path) -> None:
    settings = {"plies": 4, "searches": 2, "batch": 4}
    once = builder(**settings)
    for number, _ in enumerate(once.extend(), 1):
        if number == 6:
            break
    books.write(tmp_path / "once", once.book)
    for _ in range(3):
        again, _ = books.read(GAME, tmp_path / "parts") if (tmp_path / "parts").exists() else (Book(GAME), True)
        part = builder(again, **settings)
        part.renew_keys()
        for number, _ in enumerate(part.extend(), 1):
            if number == 2:
                break
        books.write(tmp_path / "parts", part.book)
    assert (tmp_path / "parts").read_bytes() == (tmp_path / "once").read_bytes()


def test_the_cheapest_positions_come_first() -> None:
    each = builder(plies=9, searches=2, batch=4)
    for number, _ in enumerate(each.extend(), 1):
        if number == 8:
            break

    def cost(line: Sequence[int]) -> float:
        """Return the cost of a line by its definition; other lines may lead to the same position at a lower cost."""
        total, evaluated = 0.0, each.book.evaluated()
        for length, action in enumerate(line):
            moves = each.book.moves_after(line[:length], evaluated)
            player = length % 2
            by_key = {key(each, (*line[:length], move.action)): move.value[player] for move in moves}
            total += 1 + max(0.0, moves[0].value[player] - by_key[key(each, (*line[:length], action))]) / each.settings.ply_loss
        return total

    costs = [cost(line) for line in each.wanted()[:12]]
    assert costs == pytest.approx(sorted(costs))
    assert len(set(costs)) > 1


def key(builder: BookBuilder, line: Sequence[int]) -> str:
    state = GAME.init(jax.random.key(0))
    for action in line:
        state = GAME.apply(state, jnp.int32(action))
    return books.key_text(books.position_key(builder.game, state).words)


def test_keys_are_renewed_after_a_change_of_states(tmp_path: Path) -> None:
    first = builder(plies=3, searches=1, batch=4)
    next(first.extend())
    next(first.extend())
    books.write(tmp_path / "book", first.book)
    text = (tmp_path / "book").read_text()
    for number, each in enumerate(first.book.positions):
        text = text.replace(each, f"{number:016x}")
    head = json.loads(text.partition("\n")[0])
    (tmp_path / "book").write_text(text.replace(head["layout"], "00000000"))
    again = BookBuilder(agents.agent(AGENT, GAME), books.read(GAME, tmp_path / "book")[0], first.settings)
    again.renew_keys()
    assert again.book.positions == first.book.positions


def test_no_batch_starts_that_would_exceed_the_time() -> None:
    times = iter([0.0, 0.0, 50.0, 70.0, 70.0, 90.0, 90.0])
    assert len(list(builder(plies=9, searches=1, batch=1).extend(100.0, lambda: next(times)))) == 3


def test_errors() -> None:
    for agent, game in (("random", GAME), ("puct:seconds=1", GAME), ("puct", tilewe_jax.make("triominos"))):
        with pytest.raises(ValueError, match=agent.partition(":")[0] if game is GAME else "hidden"):
            BookBuilder(agents.agent(agent, game), Book(game), BookSettings())
    with pytest.raises(ValueError, match="plies"):
        BookSettings(plies=0)


COMMAND = ("--game", "santorini", "--set", "size=3")
SEARCH = ("--agent", "puct:num_simulations=8,num_playouts=0", "--searches", "2", "--batch", "2", "--plies", "2")


def test_the_command_extends_and_shows_a_book(tmp_path: Path) -> None:
    file = tmp_path / "book.jsonl"
    assert run("book", str(file), *COMMAND).code == 2
    built = run("book", str(file), *COMMAND, *SEARCH, "--minutes", "10", "--json")
    assert built.code == 0, built.err
    content = json.loads(built.out)
    assert content["positions"] == len(file.read_text().splitlines()) - 1 > 1
    assert content["moves"][0]["positions"] > 0
    shown = run("book", str(file), "--after", content["moves"][0]["move"], "--json")
    assert json.loads(shown.out)["moves"]
    game = tilewe_jax.make("santorini", size=3)
    agent = agents.agent(f"puct:num_simulations=8,num_playouts=0,book={file}", game)
    assert int(agent.book_move(game.init(jax.random.key(0)), jax.random.key(0))) == content["moves"][0]["action"]
    lists = run("openings", *COMMAND, "--book", str(file), "--tolerance", "1", "--out", str(tmp_path / "openings.json"))
    assert lists.code == 2, "the book ends after one move"
    file.write_text(file.read_text()[:-9])
    for arguments in ((), (*SEARCH, "--minutes", "1")):
        damaged = run("book", str(file), *COMMAND, *arguments)
        assert damaged.code in (1, 2)
        assert str(file) in damaged.err


def test_balanced_openings_of_a_book(tmp_path: Path) -> None:
    game, file = tilewe_jax.make("santorini", size=3), tmp_path / "book.jsonl"
    assert run("book", str(file), *COMMAND, *SEARCH[:-2], "--plies", "3", "--minutes", "0.001").code == 0
    book, builder = Book(game), open_book(game, file, SEARCH[1], BookSettings(plies=3, searches=2, batch=2))
    while not book.positions or max(len(each.actions) for each in book.positions.values()) < 2:
        next(builder.extend())
        book = builder.book
    books.write(file, book)
    listed = openings.from_book(game, file, 5, 0.5)
    assert {len(opening.actions) for opening in listed} == {2}
    evaluated = book.evaluated()
    for opening in listed:
        assert opening.values["agent"] == book.moves_after(opening.actions, evaluated)[0].value[0]
    assert openings.from_book(game, file, 1, 0.5) == listed[:1]


def test_ctrl_c_keeps_the_batches_so_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewe_jax.arena import book_builder

    extend = BookBuilder.extend

    def interrupted(self: BookBuilder, seconds: float | None = None) -> Any:
        yield next(extend(self, seconds))
        raise KeyboardInterrupt

    monkeypatch.setattr(book_builder.BookBuilder, "extend", interrupted)
    file = tmp_path / "book.jsonl"
    outcome = run("book", str(file), *COMMAND, *SEARCH, "--minutes", "10")
    assert outcome.code == 130
    builder = open_book(tilewe_jax.make("santorini", size=3), file, SEARCH[1], BookSettings())
    assert len(builder.book.positions) == 1


@pytest.mark.parametrize("name", sorted(path.stem for path in books.FOLDER.glob("*.jsonl")))
def test_keys_of_shipped_books(name: str, tmp_path: Path) -> None:
    game = tilewe_jax.make(name)
    book = books.load(game, True)
    settings = BookSettings(plies=max(len(position.actions) for position in book.positions.values()) + 1)
    renewed = BookBuilder(agents.agent("puct", game), Book(game, book.agents, dict(book.positions)), settings)
    renewed.renew_keys()
    books.write(tmp_path / "renewed", renewed.book)
    assert (tmp_path / "renewed").read_bytes() == books.find(game, True).read_bytes()
