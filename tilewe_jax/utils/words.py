"""Words of messages: the nearest valid name, numbers with their noun, and comparisons. Plain Python, without JAX."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_SINGULAR = {
    "leaves": "leaf",
    "hashes": "hash",
    "studies": "study",
    "matches": "match",
    "processes": "process",
    "corners of the opponent": "corner of the opponent",
}


def counted(number: int, nouns: str) -> str:
    """Join a number and its noun, given in the plural.

    >>> counted(1, "games"), counted(1200, "games")
    ('1 game', '1,200 games')
    """
    return f"{number:,} {noun_of(number, nouns)}"


def noun_of(number: int, nouns: str) -> str:
    """Return the form of a noun, given in the plural, that follows a number.

    >>> noun_of(1, "processes"), noun_of(2, "processes")
    ('process', 'processes')
    """
    return nouns if number != 1 else _SINGULAR.get(nouns, nouns.removesuffix("s"))


Difference = tuple[float, str, str, str]
"""Weight of a difference of one, negative if less is better; name of the fact; its noun in the plural; a sentence with the
counts ``{p}`` of the move that was played and ``{b}`` of the better move."""


def differences(played: Mapping[str, Any], better: Mapping[str, Any], table: Sequence[Difference]) -> list[tuple[float, str]]:
    """Return the differences in counted facts as sentences with weights, which are positive if the better move is better.

    >>> differences({"corners": 1}, {"corners": 4}, [(2.0, "corners", "corners", "It leaves {p}; the better move leaves {b}.")])
    [(6.0, 'It leaves 1 corner; the better move leaves 4.')]
    """
    return [
        (weight * (better[name] - played[name]), sentence.format(p=counted(played[name], nouns), b=better[name]))
        for weight, name, nouns, sentence in table
    ]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the nearest known name, or an empty text.

    >>> did_you_mean("santorni", ["duo", "santorini"])
    ' (did you mean santorini?)'
    """
    similar = nearest(name, known)
    return f" (did you mean {similar}?)" if similar else ""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant, by edit distance, or ``None``.

    Case, blanks, hyphens and underscores do not matter. A name may also be the start or the last part of a single known name,
    or the group of dotted names.
    """
    names = list(dict.fromkeys(known))
    given = _plain(name)
    if not given or len(name) > _LONGEST:
        return None
    if group := [other for other in names if _plain(other).startswith(f"{given}.")]:
        return group[0]
    by_distance = sorted((_distance(given, _plain(other)), index) for index, other in enumerate(names))
    if by_distance and by_distance[0][0] <= max(1, len(given) // 3) and by_distance[0][0] < len(given):
        return names[by_distance[0][1]]
    parts = [other for other in names if _plain(other).startswith(given) or _is_last_part(given, _plain(other))]
    if len(given) >= _SHORTEST_PART and len(parts) == 1:
        return parts[0]
    last = {other.rpartition(".")[2]: other for other in names if "." in other}
    similar = nearest(name.rpartition(".")[2], last) if last else None
    return last[similar] if similar and similar in last else None


_LONGEST = 100
"""Maximum length of compared names, because the time grows with the product of the lengths."""
_SHORTEST_PART = 3


def _is_last_part(given: str, name: str) -> bool:
    return name.endswith((f".{given}", f"_{given}"))


def _plain(name: str) -> str:
    return "_".join(name.strip().lower().replace("-", "_").split())


def _distance(left: str, right: str) -> int:
    """Edit distance with insertion, deletion, replacement and swaps of neighbours."""
    rows = [list(range(len(right) + 1))]
    for i, letter in enumerate(left, 1):
        row = [i]
        for j, other in enumerate(right, 1):
            cost = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == right[j - 2] and left[i - 2] == other:
                cost = min(cost, rows[-2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]
