"""The page in Chromium: puzzles, and the explorer of a study."""

from pathlib import Path
from typing import Any

from tests.tilewe_jax.web.test_explore import HOST, random_record
from tilewe_jax import records
from tilewe_jax.web import puzzles

NUMBER = next(number for number in range(1, 29) if puzzles.puzzle("santorini", number)["asked"] == 2)


def tap(page: Any, move: dict[str, Any]) -> None:
    """Play a move of Santorini by clicks on its cells."""
    board = page.locator(".board svg .tilewe-ground").first.bounding_box()
    for x, y in (move["from"], move["to"], move["build"]):
        page.mouse.click(board["x"] + (x + 0.5) * board["width"] / 5, board["y"] + (4.5 - y) * board["height"] / 5)


def test_a_puzzle_is_solved(open_page: Any) -> None:
    view = open_page()
    page = view.page
    view.open(f"/puzzle/santorini/{NUMBER}")
    page.wait_for_selector(".board svg")
    puzzle = puzzles.puzzle("santorini", NUMBER)
    start, moves = puzzle["start"], puzzle["moves"]
    wrong = next(move for move in puzzle["legal"][start] if move["id"] != moves[start]["id"] and move["kind"] == "turn")
    tap(page, wrong)
    page.wait_for_selector(".bar.wrong")
    assert page.locator(".timeline output").inner_text() == f"{start} / {start}"
    tap(page, moves[start])
    page.wait_for_selector(".bar.right:has-text('Find the next move')")
    second = max(puzzle["legal"])
    assert page.locator(".timeline output").inner_text() == f"{second} / {second}"  # the reply was played
    tap(page, moves[second])
    page.wait_for_selector(".bar.right:has-text('Solved')")
    assert page.locator(".solved-count").inner_text() == "Puzzles solved so far: 1"
    page.click('[data-focus="next-puzzle"]')
    page.wait_for_selector(f".status:has-text('Puzzle'):not(:has-text('Puzzle {NUMBER} of'))")
    page.wait_for_selector(".board svg")
    page.click('[data-focus="action-bulb"]')
    page.wait_for_selector(".bar:has-text('The solution')")
    assert page.locator(".solved-count").inner_text() == "Puzzles solved so far: 1"
    page.click('[data-focus="action-open"]')
    page.wait_for_selector("#tab-explorer")
    view.open("/")
    page.wait_for_selector(".daily svg")
    page.click(".daily")
    page.wait_for_selector(".status:has-text('Find the only winning move')")


def test_the_explorer_plays_moves(open_page: Any, tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    games = [random_record(seed) for seed in range(8)]
    records.write(file, HOST, games)
    view = open_page()
    page = view.page
    view.open("/study").page.set_input_files("#record-file", file)
    page.wait_for_selector(".board svg")
    page.click("#tab-explorer")
    page.select_option('[data-focus="explorer-source"]', "study")
    page.wait_for_selector(".explorer table")
    counts = [int(cell) for cell in page.locator(".explorer td.number:nth-child(2)").all_inner_texts()]
    assert sum(counts) == len(games)
    move = page.locator(".explorer td .link").last
    move.hover()
    page.wait_for_selector(".tilewe-ghost")
    move.click()
    page.wait_for_selector(".timeline output:has-text('1 / ')")
    page.wait_for_selector(".explorer table")
    page.keyboard.press("Home")
    page.wait_for_selector(".explorer table")
    assert [int(cell) for cell in page.locator(".explorer td.number:nth-child(2)").all_inner_texts()] == counts
