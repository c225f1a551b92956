"""The PPO of CleanRL on the environments as in docs/interop.md: unmodified, and with two changes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SECTION = (ROOT / "docs" / "interop.md").read_text().partition("## CleanRL\n")[2].partition("\n## ")[0]


@pytest.mark.slow
@pytest.mark.parametrize("is_changed", [False, True], ids=["unmodified", "with masks, in one batch"])
def test_ppo_trains(is_changed: bool, tmp_path: Path) -> None:
    if "CLEANRL" not in os.environ:
        pytest.skip("needs CLEANRL, the folder of a checkout of vwxyzjn/cleanrl")
    for package in ("gymnasium", "torch", "tensorboard"):
        pytest.importorskip(package)
    script = Path(os.environ["CLEANRL"], "cleanrl", "ppo.py").read_text()
    module, mask, batch = re.findall(r"```py(?:thon)?\n(.*?)```", SECTION, re.DOTALL)
    if is_changed:
        script, num_masks = re.subn(r"( +logits = self.actor\(x\)\n)", rf"\1        {mask}", script)
        script, num_batches = re.subn(r"envs = gym\.vector\.SyncVectorEnv\(.*?\n    \)\n", batch, script, flags=re.DOTALL)
        assert (num_masks, num_batches) == (1, 1)
    (tmp_path / "ppo.py").write_text(script)
    (tmp_path / "my_games.py").write_text(module)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    options = ["--env-id", "my_games:SmallSantorini-v0", "--total-timesteps", "512", "--num-steps", "32"]
    command = [sys.executable, "ppo.py", *options]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("SPS:") == 4
