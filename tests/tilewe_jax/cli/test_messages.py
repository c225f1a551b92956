"""Texts that users meet first: ``tests/data/messages.txt`` pins them, and no other test repeats sentences.

``python -m tests.tilewe_jax.cli.test_messages`` writes the file again.
"""

import os
import shlex
import tempfile
from pathlib import Path
from unittest import mock

from tests import bad_inputs

FILE = Path(__file__).parents[2] / "data" / "messages.txt"
HELP_LINES = 9
"""Number of pinned lines of a help text."""
COMMANDS = """
--help
rollout --help
match --help
train --help
play --help
rolout
x
--fast rollout
arena random
rollout --bacth 3
rollout --batch many
rollout --batch 0
rollout --batch
rollout --game santorni
rollout --game chess
rollout --players 7
rollout --set size
rollout --game santorini --set szie=4
rollout --out /no/such/folder/file
show
show none.jsonl
match --game santorini radnom random
match --game santorini random puct:num_simulation=4
match --game santorini random level:12
match --game santorini random puct:network=santorni
match --game duo random --set size=8 x=random
match --sprt 5
train
train --out run --set iteratons=3
train --out run --set selfplay.num_games=0
train --out run --preset duo-cup
train --list optimiser
bench --form fast
export --game duo
play --game santorini --agent level:99
"""


def messages() -> str:
    """Run the commands, up to their work, and return their output."""
    parts = []
    with mock.patch.dict(os.environ, {"COLUMNS": "80"}), bad_inputs.stopped_before_work():
        for line in COMMANDS.split("\n")[1:-1]:
            outcome = bad_inputs.run(*shlex.split(line))
            lines = (outcome.out + outcome.err).splitlines()
            shown = lines[:HELP_LINES] if "--help" in line else lines
            parts.append("\n".join([f"$ tilewe-jax {line}", *(text.rstrip() for text in shown), f"[{outcome.code}]\n"]))
    return "\n".join(parts)


def test_first_messages() -> None:
    assert messages() == FILE.read_text()


if __name__ == "__main__":
    os.chdir(tempfile.mkdtemp())
    FILE.write_text(messages())
