"""Every printed install line works from a clone: PyPI's `genesis` is another project's, and this one is not there."""

import re
import tomllib
from pathlib import Path

import pytest

from genesis.runtime.installation import install_command

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
FILES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md"), *(ROOT / "genesis").rglob("*.py"),
     *(ROOT / "tools").glob("*.py"), *(ROOT / "examples").glob("*.py"), ROOT / "pyproject.toml", ROOT / "Makefile"]
)
FROM_PYPI = re.compile(r"""pip\s+install\b[^\n#`]*?[\s"'](?:genesis|genesis-trace)(?![\w./-])|(?<![\w.-])genesis\[""")
OF_A_CLONE = re.compile(r'pip\s+install\b[^\n]*?\s"?\.\[([\w,-]+)\]"?')


@pytest.mark.parametrize("line", [
    "pip install genesis", 'python -m pip install "genesis[cuda13]"', "pip install -e genesis-trace", 'mend: "genesis[cuda12]"',
])
def test_lines_that_ask_pypi_are_recognised(line):
    assert FROM_PYPI.search(line)


@pytest.mark.parametrize("line", ['pip install -e ".[cuda13]"', "pip install .", "pip install /tmp/genesis", "import genesis"])
def test_lines_that_ask_a_clone_are_not(line):
    assert not FROM_PYPI.search(line)


def test_no_text_asks_pypi_for_genesis():
    texts = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in FILES}
    assert [(name, match[0]) for name, text in texts.items() for match in FROM_PYPI.finditer(text)] == []


def test_extras_that_texts_name_exist():
    named = [set(extras.split(",")) for file in FILES for extras in OF_A_CLONE.findall(file.read_text(encoding="utf-8"))]
    assert named and set().union(*named) <= EXTRAS.keys()


@pytest.mark.parametrize("extra", ["", "cuda12", "cuda13"])
def test_the_printed_command_installs_this_clone(extra):
    assert install_command(extra) == f'python -m pip install --editable "{ROOT}{f"[{extra}]" if extra else ""}"'
    assert not extra or extra in EXTRAS


def test_the_printed_command_of_a_wheel_is_for_a_clone(monkeypatch, tmp_path):
    monkeypatch.setattr("genesis.runtime.installation._TREE", tmp_path)
    assert install_command("cuda13") == 'python -m pip install --editable ".[cuda13]"'


def test_the_distribution_has_a_name_of_its_own_and_extras_refer_to_it():
    assert PROJECT["name"] != "genesis"
    own = [need for needs in EXTRAS.values() for need in needs if need.startswith("genesis")]
    assert own and all(re.fullmatch(rf"{PROJECT['name']}\[[\w,-]+\]", need) for need in own)
