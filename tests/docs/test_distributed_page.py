"""docs/distributed.md: its script runs as one process, as it says."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "distributed.md"


def test_the_script_runs_alone(tmp_path):
    [script] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "train.py").write_text(script)
    ended = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["0", "True", "1", "True", "2", "True"]
