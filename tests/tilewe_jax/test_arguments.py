"""Command lines as dataclasses."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest

from tilewe_jax.arguments import Option, from_arguments


@dataclass(frozen=True)
class Command:
    """Do something.

    With details.
    """

    agents: Annotated[tuple[str, ...], Option("AGENT ...")]
    """Agents."""
    set: Annotated[tuple[str, ...], Option("OPTION=VALUE ...")] = ()
    """Options of the game. More about them."""
    num_games: int = 3
    """Number of games."""
    sprt: tuple[float, float] | None = None
    """Bounds."""
    import_: Annotated[tuple[str, ...], Option("MODULE", is_repeated=True, is_rare=True)] = ()
    """Modules."""
    form: Literal["a", "b"] = "a"
    """Form."""
    out: Path | None = None
    """File."""
    json: bool = False
    """Print JSON."""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", Command(())),
        ("x --json y --num-games 4 z", Command(("x", "y", "z"), json=True, num_games=4)),
        ("--num_games=4 --num-games 5", Command((), num_games=5)),
        ("--set a=1 b.c=2 puct:leaves=2 x --set d=3", Command(("puct:leaves=2", "x"), ("a=1", "b.c=2", "d=3"))),
        ("--sprt -1 2.5 x", Command(("x",), sprt=(-1.0, 2.5))),
        ("--import a x --import b", Command(("x",), import_=("a", "b"))),
        ("--agents x --form b --out f", Command(("x",), form="b", out=Path("f"))),
    ],
)
def test_arguments(arguments: str, expected: Command) -> None:
    assert from_arguments(Command, arguments.split()) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--num-games", "--num-games"),
        ("--num-games many", "'many'"),
        ("--num-gmaes 3", "did you mean --num-games"),
        ("--sprt 5", "--sprt"),
        ("--form c", "--form"),
        ("--", "--"),
    ],
)
def test_invalid_arguments(arguments: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_arguments(Command, arguments.split())


@dataclass(frozen=True)
class Single:
    """Read a file."""

    file: Path
    """File."""
    set: Annotated[tuple[str, ...], Option("OPTION=VALUE ...")] = ()
    """Options."""


def test_positional_arguments() -> None:
    assert from_arguments(Single, ["--set", "a=1", "f"]) == Single(Path("f"), ("a=1",))
    for arguments, message in (([], "FILE"), (["f", "g"], "g"), (["f", "--set", "a"], "OPTION=VALUE")):
        with pytest.raises(ValueError, match=message):
            from_arguments(Single, arguments)


def test_help(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    texts = []
    for option in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as end:
            from_arguments(Command, [option], "program")
        assert not end.value.code
        texts.append(capsys.readouterr().out)
    short, full = texts
    assert short.startswith("usage: program AGENT ... [OPTIONS]\n\nDo something.\n\nWith details.\n\n")
    assert ("--import" in short, "--import MODULE" in full) == (False, True)
    assert ("More about them" in short, "More about them" in full) == (False, True)
    assert "(default: 3)" in full
