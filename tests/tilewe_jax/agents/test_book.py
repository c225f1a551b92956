"""Opening books: keys, files, and agents that play from them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tilewe_jax
from tests.tilewe_jax.agents.symmetric_tictactoe import SymmetricTicTacToe
from tilewe_jax import agents
from tilewe_jax.agents import book as books
from tilewe_jax.agents.analysis import SearchProgram
from tilewe_jax.agents.book import Book, BookMove, BookPosition
from tilewe_jax.arena.book_builder import BookBuilder, BookSettings
from tilewe_jax.arena.match import play_match
from tilewe_jax.interop.analysis_requests import Played

GAME = SymmetricTicTacToe()
AGENT = "puct:num_simulations=20,num_candidates=9,num_playouts=1,num_samples=1,priors=false,score_weight=0"
GAMES = {
    "tictactoe": GAME,
    "santorini": tilewe_jax.make("santorini", size=3),
    "duo_official": tilewe_jax.make("duo_official", size=5, pieces=("O1", "I2", "L3")),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a book of positions with at most two moves."""
    builder = BookBuilder(agents.agent(AGENT, GAME), Book(GAME), BookSettings(plies=3, searches=2, batch=4))
    for _ in range(5):
        next(builder.extend())
    file = tmp_path_factory.mktemp("book") / "book.jsonl"
    books.write(file, builder.book)
    return file


def state_after(game: Any, actions: Any) -> Any:
    state = game.init(jax.random.key(0))
    for action in actions:
        state = game.apply(state, jnp.int32(action))
    return state


def key_of(game: Any, state: Any) -> str:
    return books.key_text(books.position_key(game, state).words)


@pytest.mark.parametrize("name", GAMES)
def test_symmetric_positions_share_a_key_and_a_canonical_position(name: str) -> None:
    game = GAMES[name]

    @jax.jit
    def images(key: Any) -> Any:
        first, second = jax.random.split(key)
        state = game.init(key)
        state = game.apply(state, game.sample_action(state, first))
        state = game.apply(state, game.sample_action(state, second))
        every = jax.vmap(game.transform, (None, 0))(state, jnp.arange(game.num_symmetries, dtype=jnp.int32))
        located = jax.vmap(lambda image: books.position_key(game, image))(every)
        return located.words, jax.vmap(game.transform)(every, located.symmetry)

    keys = set()
    for seed in range(5):
        words, canonical = jax.device_get(images(jax.random.key(seed)))
        assert (words == words[0]).all()
        jax.tree.map(lambda leaf: np.testing.assert_array_equal(leaf, np.broadcast_to(leaf[:1], leaf.shape)), canonical)
        keys.add(books.key_text(words[0]))
    assert len(keys) > 1


def test_transpositions_share_a_key() -> None:
    assert key_of(GAME, state_after(GAME, (0, 1, 5))) == key_of(GAME, state_after(GAME, (5, 1, 0)))
    assert key_of(GAME, state_after(GAME, (0, 1, 5))) != key_of(GAME, state_after(GAME, (0, 5, 1)))


def test_a_book_plays_the_stored_move_in_every_orientation(path: Path) -> None:
    book = books.load(GAME, str(path))
    table, evaluated = book.table(), book.evaluated()
    images, move = GAME.action_symmetries, jax.jit(lambda state: table.move(GAME, state, jax.random.key(0)))
    assert len(book.positions) > 10
    for key, position in book.positions.items():
        state, best = state_after(GAME, position.actions), evaluated[key][0]
        value = best.value[position.player] - best.error
        assert value == max(other.value[position.player] - other.error for other in evaluated[key])
        for index in range(GAME.num_symmetries):
            image = GAME.transform(state, index)
            played = int(move(image))
            after, expected = GAME.apply(image, jnp.int32(played)), GAME.apply(state, jnp.int32(best.action))
            assert key_of(GAME, after) == key_of(GAME, expected)
            (first, *_) = book.moves_in(books.position_key(GAME, image), evaluated)
            assert first.action == played
        assert int(move(state)) in images[:, best.action]
    assert int(move(state_after(GAME, (0, 1, 2)))) == -1
    assert book.moves_after((0, 1, 2), evaluated) == ()


def test_agents_search_out_of_the_book_only(path: Path) -> None:
    game = GAME
    booked, plain = agents.agent(f"{AGENT},book={path}", game), agents.agent(AGENT, game)
    lines = [(), (4,), (0, 1, 2), (4, 0, 8, 2)]
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[state_after(game, line) for line in lines])
    keys = jax.random.split(jax.random.key(1), len(lines))
    act = jax.jit(jax.vmap(agents.Agent.act, in_axes=(None, 0, 0)))
    move = np.asarray(jax.jit(jax.vmap(agents.Agent.book_move, in_axes=(None, 0, 0)))(booked, states, keys))
    assert (move >= 0).tolist() == [True, True, False, False]
    np.testing.assert_array_equal(act(booked, states, keys), np.where(move >= 0, move, act(plain, states, keys)))
    inside = jax.tree.map(lambda leaf: leaf[:2], states)
    np.testing.assert_array_equal(act(booked, inside, keys[:2]), move[:2])
    assert booked.name.endswith(f"book={path}")
    assert plain.book is None


def test_whole_games_start_with_the_book(path: Path) -> None:
    booked = agents.agent(f"booked={AGENT},book={path}", GAME)
    player, position, actions = booked.host(seed=1), GAME.host(GAME.init(jax.random.key(0))), list[int]()
    state = GAME.init(jax.random.key(0))
    while not position.is_terminal:
        actions.append(player.choose(actions))
        move = int(booked.book_move(state, jax.random.key(0)))
        assert (player.last_search() is None) == (move >= 0)
        assert move in (-1, actions[-1])
        state, position = GAME.apply(state, jnp.int32(actions[-1])), position.after(actions[-1])
    results = play_match(GAME, [booked, agents.agent(f"plain={AGENT}", GAME)], 8, 8, 0, keep=True)
    assert not results.all("forfeits").any()
    first = {record.actions[0] for record in results.records if record.players[0] == "booked"}
    assert first == {actions[0]}


def test_a_margin_draws_among_good_moves() -> None:
    moves = [
        BookMove(4, 5, (0.6, 0.4), 0.01, None),
        BookMove(0, 5, (0.58, 0.42), 0.01, None),
        BookMove(1, 5, (0.5, 0.5), 0, None),
    ]
    located = books.position_key(GAME, GAME.init(jax.random.key(0)))
    key, state = books.key_text(located.words), GAME.init(jax.random.key(0))
    book = Book(GAME, ["a"], {key: BookPosition(key, (), int(located.symmetry), 0, 0, 15, tuple(moves))})
    draw = jax.jit(jax.vmap(lambda table, key: table.move(GAME, state, key), (None, 0)))
    for margin, actions in ((0.0, {4}), (0.03, {0, 4}), (0.2, {0, 1, 4})):
        assert set(draw(book.table(margin), jax.random.split(jax.random.key(0), 32)).tolist()) == actions


def test_analyses_report_the_book(path: Path) -> None:
    program = SearchProgram(agents.agent(f"{AGENT},book={path}", GAME), batch=4, score_playouts=0)
    inside, outside = program.analyze([Played(None, (8,)), Played(None, (0, 1, 2))])
    book = books.load(GAME, str(path))
    moves = book.moves_after((8,), book.evaluated())
    assert (inside.is_book, outside.is_book) == (True, False)
    assert [(each.action, each.value, each.error) for each in inside.candidates] == [
        (m.action, m.value, m.error) for m in moves
    ]
    assert inside.action == moves[0].action
    assert outside.num_simulations == 20


def test_files_restore_books(path: Path, tmp_path: Path) -> None:
    book, is_current = books.read(GAME, path)
    assert is_current
    books.write(tmp_path / "copy.jsonl", book)
    assert (tmp_path / "copy.jsonl").read_bytes() == path.read_bytes()


DAMAGES = {
    "truncated": lambda text: text[:-20],
    "a line less": lambda text: text[: text.rindex("\n", 0, -1) + 1],
    "no head": lambda text: text[text.index("\n") + 1 :],
    "empty": lambda text: "",
    "binary": lambda text: "\0" + text,
    "agent": lambda text: text.replace('"agent":0', '"agent":7', 1),
    "action": lambda text: text.replace('"actions":[]', '"actions":[9]', 1),
    "key": lambda text: text.replace('"key":"', '"key":"x', 1),
    "no initial position": lambda text: text.replace('"actions":[]', '"actions":[0]', 1),
    "no moves": lambda text: text.replace('"moves":', '"other":', 1),
    "game": lambda text: text.replace('"game": "tictactoe"', '"game": "chess"', 1),
    "layout": lambda text: text.replace('"layout": "', '"layout": "x', 1),
    "twice": lambda text: text + text[text.rindex("\n", 0, -1) + 1 :],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_book_is_one_error_that_names_the_file(damage: str, path: Path, tmp_path: Path) -> None:
    text, file = path.read_text(), tmp_path / "damaged.jsonl"
    assert DAMAGES[damage](text) != text
    file.write_text(DAMAGES[damage](text))
    with pytest.raises(ValueError, match=r"damaged\.jsonl"):
        books.load(GAME, str(file))


def test_books_that_do_not_exist(tmp_path: Path) -> None:
    for text, game in (
        (f"puct:book={tmp_path / 'none.jsonl'}", GAME),
        ("puct:book=true", tilewe_jax.make("santorini", size=3)),
        ("puct:book=true", tilewe_jax.make("triominos")),
        (f"puct:book={tmp_path / 'none.jsonl'}", tilewe_jax.make("santorini", size=3, placement="random")),
    ):
        with pytest.raises(ValueError, match="book"):
            agents.agent(text, game)
    assert replace(agents.AgentSpec.parse("puct:book=true"), book=False) == agents.AgentSpec.parse("puct:book=false")
