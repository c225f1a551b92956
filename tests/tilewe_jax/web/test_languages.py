"""The languages of the page: each file translates all texts, and each text that the page shows is translated."""

import json
import re
from typing import Any

import pytest

from tests.tilewe_jax.web.page_texts import STATIC, messages, texts, texts_of_script

FILES = sorted((STATIC / "languages").glob("*.json"))


@pytest.fixture(scope="module")
def keys() -> dict[str, set[str]]:
    return {"texts": texts(), "messages": messages()}


def placeholders(text: str) -> list[str]:
    return sorted(re.findall(r"\{\d+\}", text))


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
@pytest.mark.parametrize("part", ["texts", "messages"])
def test_each_text_has_an_entry(file: Any, part: str, keys: dict[str, set[str]]) -> None:
    entries = json.loads(file.read_bytes())[part]
    missing, unused = sorted(keys[part] - entries.keys()), sorted(entries.keys() - keys[part])
    assert (missing, unused) == ([], []), f'add to "{part}" of {file.name}: {missing}; remove: {unused}'


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_entries_are_well_formed(file: Any) -> None:
    content = json.loads(file.read_bytes())
    assert content.keys() == {"language", "texts", "messages"}
    for key, entry in (content["texts"] | content["messages"]).items():
        forms = entry if isinstance(entry, dict) else {"other": entry}
        assert "other" in forms, key
        assert forms.keys() <= {"zero", "one", "two", "few", "many", "other"}, key
        assert all(placeholders(form) == placeholders(key) for form in forms.values()), key
        # Spaces at the ends separate a text from its neighbours.
        assert all(re.findall(r"^\s|\s$", form) == re.findall(r"^\s|\s$", key) for form in forms.values()), key


def test_templates_are_translated() -> None:
    scripts = [file for file in STATIC.rglob("*.js") if file.name != "language.js"]
    faults = {file.name: [(each.line, each.text) for each in texts_of_script(file.read_text())[1]] for file in scripts}
    assert not any(faults.values()), f"write t before these templates: {faults}"


def test_literals_of_a_script() -> None:
    source = """
    // "a comment"
    const NAMES = { first: "First move", other: t("other"), sign: / "no text" /.test("x") };
    h("div.row", { className: "big red", title: `${name} is next` }, open && "close");
    h("p", {}, t`After ${t`move ${n}`} of ${last}`, `${n} %`);
    if (kind === "Some kind") say(plural(n, "move"), plural(n, "leaf", "leaves"));
    """
    keys, faults = texts_of_script(source)
    assert keys == {"First move", "other", "close", "move {0}", "After {0} of {1}", "{0} moves", "{0} leaves"}
    assert [each.text for each in faults] == ["{0} is next"]
