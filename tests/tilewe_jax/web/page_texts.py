"""Finds the texts of the page in its sources: in JavaScript, in its HTML, and in the Python modules that make sentences."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import count
from pathlib import Path

import tilewe_jax
from tilewe_jax.draw.theme import COLORS
from tilewe_jax.games.polyomino import coach as polyomino_coach
from tilewe_jax.games.santorini import coach as santorini_coach
from tilewe_jax.games.triominos import coach as triominos_coach
from tilewe_jax.host_games import OFFERS
from tilewe_jax.utils.words import counted

_TEXT_PROPERTIES = {"title", "ariaLabel", "aria-label", "placeholder", "alt", "ariaRoleDescription", "aria-valuetext"}
_OTHER_PROPERTIES = {"className", "dataset", "style", "class", "d", "viewBox", "type", "accept", "headers", "font-family"}
_NO_TEXTS = {
    "closest", "matches", "matchMedia", "querySelector", "querySelectorAll", "createElementNS", "setAttribute", "setProperty",
    "getElementById", "addEventListener", "classList", "test", "replace", "includes", "startsWith", "request", "URL", "respond",
}  # fmt: skip
"""Functions whose arguments are not shown."""
_ELEMENTS = {"h", "s"}
_WORDS = re.compile(r"^[^\w<#/.]*[A-Z][a-z]|[A-Za-z][a-z,.:;?!]* +[A-Za-z]")
_LETTERS = re.compile(r"[A-Za-z]{2}")


@dataclass(frozen=True)
class Literal:
    """A string or template of a JavaScript source."""

    line: int
    text: str
    """Its text; expressions of a template are ``{0}``, ``{1}`` ..."""
    is_template: bool
    tag: str
    """The function before a template, or the function of which a string is the first argument."""
    callee: str
    """The function of which it is an argument, if any, and the index of the argument."""
    argument: int
    is_text: bool
    """True if the page shows it, guessed from its place and its form."""


def literals(source: str) -> list[Literal]:
    """Return the strings and templates of a JavaScript source, in the order of their ends."""
    return list(_Scanner(source).scan())


@dataclass
class _Bracket:
    mark: str
    callee: str = ""
    argument: int = 0
    key: str = ""
    """The name before the last colon."""


class _Scanner:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.brackets = [_Bracket("{")]
        self.before = ""
        """The code of the current line of brackets before ``at``, without comments, for tags and names of functions."""

    def scan(self, is_nested: bool = False) -> Iterator[Literal]:
        source, depth = self.source, len(self.brackets)
        while self.at < len(source):
            rest, char = source[self.at :], source[self.at]
            if rest.startswith("//"):
                self.at = source.find("\n", self.at) % (len(source) + 1)
            elif rest.startswith("/*"):
                self.at = source.index("*/", self.at) + 2
            elif char in "\"'":
                yield self._string(char)
            elif char == "`":
                yield from self._template()
            elif char == "/" and re.search(r"(?:^|[=(,:[!&|?{};]|=>|return)\s*$", self.before):
                match = re.match(r"/(?:\\.|\[(?:\\.|[^\]])*\]|[^/\\])+/\w*", rest)
                assert match, rest[:40]
                self._pass(match.end(), "0")
            elif char in "([{":
                name = re.search(r"([\w$]+)\s*\??\.?$", self.before)
                self.brackets.append(_Bracket(char, name[1] if name and char == "(" else ""))
                self._pass(1, char)
            elif char in ")]}":
                if is_nested and char == "}" and len(self.brackets) == depth:
                    return
                self.brackets.pop()
                self._pass(1, char)
            else:
                top = self.brackets[-1]
                if char == ",":
                    top.argument += 1
                    top.key = ""
                elif char == ":" and top.mark == "{" and not top.key:
                    name = re.search(r"[\w$\-]+[\"']?\s*$", self.before)
                    top.key = name[0].strip("\"' ") if name else ""
                self._pass(1, char)

    def _pass(self, length: int, code: str) -> None:
        self.at += length
        self.before = (self.before + code)[-80:]

    @property
    def _line(self) -> int:
        return self.source.count("\n", 0, self.at) + 1

    def _string(self, quote: str) -> Literal:
        match = re.match(rf"{quote}((?:\\.|[^{quote}\\])*){quote}", self.source[self.at :])
        assert match, self._line
        text = re.sub(r"\\(.)", r"\1", match[1])
        callee = re.search(r"([\w$]+)\($", self.before)
        after = self.source[self.at + match.end() :].lstrip()
        is_key = after.startswith("in ") or (after.startswith(":") and self.before.rstrip()[-1:] in "{,")
        is_text = not is_key and self._is_text(text)
        found = Literal(self._line, text, False, callee[1] if callee else "", *self._place, is_text)
        self._pass(match.end(), f'"{text[-20:]}"' if is_key else '""')
        return found

    def _template(self) -> Iterator[Literal]:
        line, tag = self._line, re.search(r"(?<![\w.])([\w$]+)$", self.before)
        before = self.before
        self._pass(1, "`")
        text, count = "", 0
        while (char := self.source[self.at]) != "`":
            if char == "\\":
                text += self.source[self.at + 1]
                self.at += 2
            elif self.source.startswith("${", self.at):
                self.at += 2
                self.before = "("
                self.brackets.append(_Bracket("`"))
                yield from self.scan(is_nested=True)
                self.brackets.pop()
                self.at += 1
                text += f"{{{count}}}"
                count += 1
            else:
                text += char
                self.at += 1
        self.before = before
        is_text = self._is_text(re.sub(r"\{\d+\}", "", text), template=text)
        self._pass(1, "``")
        yield Literal(line, text, True, tag[1] if tag else "", *self._place, is_text)

    def _is_text(self, text: str, template: str | None = None) -> bool:
        """Return whether the page shows a literal, guessed from the function and the property that it belongs to."""
        before = self.before.rstrip()
        if not _LETTERS.search(text) or re.search(r"(?:[!=]==|\bfrom|\bimport|\bcase)$", before):
            return False
        sentence = bool(_WORDS.search(template or text))
        for bracket in reversed(self.brackets):
            if bracket.key in _TEXT_PROPERTIES and bracket.mark == "{":
                return True
            if bracket.key in _OTHER_PROPERTIES and bracket.mark == "{":
                return False
            if bracket.mark == "(" and bracket.callee:
                if bracket.callee in _ELEMENTS:
                    is_child = bracket is self._innermost_call and bracket.argument >= 2
                    return is_child or (sentence and bracket.argument >= 2)
                if bracket.callee in _NO_TEXTS:
                    return False
                break
        return sentence

    @property
    def _place(self) -> tuple[str, int]:
        call = self._innermost_call
        return (call.callee, call.argument) if call else ("", 0)

    @property
    def _innermost_call(self) -> _Bracket | None:
        return self.brackets[-1] if self.brackets[-1].mark == "(" else None


ROOT = Path(tilewe_jax.__file__).parent
STATIC = ROOT / "web" / "static"
_PICTURES = ROOT / "draw" / "static" / "tilewe-game.js"
_SHOWN_AS_THEY_ARE = {"tilewe-jax serve --runs runs", "Shift+R", "Shift+L", "tilewe_jax",
    "import sys; sys.path.insert(0, '/lib/games')", "Enter", "Escape", "Arrow", "Engine {0}",
}  # fmt: skip
"""Literals that look like texts and are the same in each language: commands, names of keys, and stored names."""


def texts_of_script(source: str) -> tuple[set[str], list[Literal]]:
    """Return the keys of the texts of a script of the page, and its templates that are shown but not translated."""
    keys, faults, noun = set(), [], ""
    for each in literals(source):
        if each.callee == "plural":
            if each.argument == 1:
                noun = each.text
                keys.add(f"{{0}} {noun}s")
            elif each.argument == 2:
                keys.discard(f"{{0}} {noun}s")
                keys.add(f"{{0}} {each.text}")
        elif each.tag == "t" or (each.is_text and not each.is_template and each.text not in _SHOWN_AS_THEY_ARE):
            keys.add(each.text)
        elif each.is_text and each.is_template and each.text not in _SHOWN_AS_THEY_ARE:
            faults.append(each)
    return keys, faults


def texts() -> set[str]:
    """Return the keys of all texts of the page."""
    scripts = [file for file in STATIC.rglob("*.js") if file.name != "language.js"]
    keys = set().union(*(texts_of_script(file.read_text(encoding="utf-8"))[0] for file in scripts))
    keys |= {each.text for each in literals(_PICTURES.read_text(encoding="utf-8")) if each.tag == "t" and each.is_template}
    html = _Html()
    html.feed((STATIC / "index.html").read_text(encoding="utf-8"))
    games = {text for game in OFFERS.values() for text in (game.title, game.tagline, *game.rules)}
    return keys | html.texts | games | set(COLORS)


class _Html(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: set[str] = set()
        self._tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tags.append(tag)
        self.texts |= {value for name, value in attrs if name == "aria-label" and value}

    def handle_data(self, data: str) -> None:
        if data.strip() and "noscript" not in self._tags and self._tags[-1] != "title" and data not in _SHOWN_AS_THEY_ARE:
            self.texts.add(data)


# ---- Sentences that are made in Python

_SENTENCES = {
    "games/polyomino/coach.py": ("reasons", "_list"),
    "games/polyomino/host.py": ("explain_placement",),
    "games/polyomino/setup.py": ("_described",),
    "games/santorini/coach.py": ("reasons",),
    "games/santorini/host.py": ("_rule_against_moving", "_rule_against_building", "_worker_on"),
    "games/triominos/coach.py": ("reasons", "_HEXAGONS"),
    "games/triominos/host.py": ("_score",),
    "games/triominos/figure.py": ("_CORNERS", "contradiction", "mismatch"),
    "games/triominos/setup.py": ("_check_places",),
    "cli/serve.py": ("TITLES",),
    "web/local.py": ("LEVELS",),
    "web/room.py": ("_ENGINE_FAILED",),
}
"""Functions and constants by module whose strings are sentences for players, or parts of them."""
_POSITIONS = {
    "games/polyomino/setup.py": (),
    "games/santorini/setup.py": (),
    "games/triominos/setup.py": (),
    "games/triominos/tiles.py": ("parse_tile",),
    "host.py": ("fields_of", "integer_of"),
}
"""Modules whose errors the position editor shows, with their functions; all functions for none."""
_FORM = {"games/triominos/config.py": "tray must be at most", "web/rooms.py": "clock must be null"}
"""Starts of refusals, by module, that the form for a new game can cause."""
_COACHES = (polyomino_coach, santorini_coach, triominos_coach)
_REFUSALS = ("RefusedError", "UnavailableError")


def messages() -> set[str]:
    """Return the keys of the sentences that the page receives from Python and from the worker of the static site.

    Refusals with the words "must be" address programmers, because the page makes only valid requests. They are omitted, except
    the refusals of ``_FORM``.
    """
    keys: set[str] = set()
    for file in sorted((ROOT / "web").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _REFUSALS and node.args:
                is_own = isinstance(node.args[0], ast.Constant | ast.JoinedStr)
                keys |= {key for key in _sentences(node.args[0]) if is_own and " must be " not in key}
    for name, wanted in _SENTENCES.items():
        nodes = [node for node in _nodes(name) if _name(node) in wanted]
        assert {_name(node) for node in nodes} == set(wanted), name
        keys |= {key for node in nodes for key in _sentences(node)}
    for name, start in _FORM.items():
        refusals = {
            key for node in _nodes(name) if isinstance(node, ast.JoinedStr) for key in _sentences(node) if key.startswith(start)
        }
        assert refusals, name
        keys |= refusals
    for name, wanted in _POSITIONS.items():
        for node in (node for node in _nodes(name) if not wanted or _name(node) in wanted):
            errors = (
                each for each in ast.walk(node) if isinstance(each, ast.Call) and getattr(each.func, "id", "") == "ValueError"
            )
            keys |= {key for error in errors for key in _sentences(error.args[0])}
    for coach in _COACHES:
        for *_, nouns, sentence in coach._DIFFERENCES:
            keys |= {sentence.format(p="{0}", b="{1}"), *_counts(nouns)}
    for file in sorted((ROOT / "web" / "static_site").glob("*.js")):
        found = literals(file.read_text(encoding="utf-8"))
        keys |= {each.text for each in found if each.is_text and each.text not in _SHOWN_AS_THEY_ARE}
    return keys


def _nodes(name: str) -> Iterator[ast.AST]:
    """Yield the nodes of a module of the package."""
    return ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8")))


def _name(node: ast.AST) -> str:
    """Return the name of a function or of a constant."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        node = node.targets[0] if isinstance(node, ast.Assign) else node.target
        return getattr(node, "id", "")
    return getattr(node, "name", "") if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else ""


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _counts(nouns: str) -> tuple[str, str]:
    """Return the keys of a number with its noun."""
    return f"{{0}} {nouns}", "{0}" + counted(1, nouns)[1:]


def _sentences(node: ast.AST) -> Iterator[str]:
    """Yield the keys of the strings below a node, except those that are compared, look up a value, or document a function."""
    if isinstance(node, ast.JoinedStr):
        number = count()
        text = "".join(f"{{{next(number)}}}" if isinstance(part, ast.FormattedValue) else part.value for part in node.values)  # type: ignore[attr-defined]
        if _LETTERS.search(text):
            yield text
        for part in node.values:
            yield from _sentences(part.value) if isinstance(part, ast.FormattedValue) else ()
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str) and _LETTERS.search(node.value):
            yield node.value
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "join" and isinstance(node.func.value, ast.Constant):  # type: ignore[attr-defined]
        if _LETTERS.search(separator := node.func.value.value):  # type: ignore[attr-defined]
            yield f"{{0}}{separator}{{1}}"
        yield from (key for argument in node.args for key in _sentences(argument))
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "counted":
        yield from _counts(node.args[1].value)  # type: ignore[attr-defined]
    elif isinstance(node, ast.Subscript):
        yield from _sentences(node.value)
    elif isinstance(node, ast.Dict):
        yield from (key for value in node.values for key in _sentences(value))
    elif not isinstance(node, ast.Compare | ast.arguments) and not _is_docstring(node):
        yield from (key for child in ast.iter_child_nodes(node) for key in _sentences(child))
