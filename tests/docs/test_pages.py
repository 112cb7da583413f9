"""Links lead somewhere, decisions have their three sections, and what CONTRIBUTING tells one to run runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DECISIONS = sorted(page for page in (ROOT / "docs" / "decisions").glob("*.md") if page.name != "README.md")
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """What links may name behind `#`: headings in lower case, spaces as hyphens, without punctuation."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page):
    for link in LINK.findall(FENCE.sub("", text(page))):
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        if not link.startswith("https://"):
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def test_there_are_twenty_decisions_and_an_index_of_all():
    index = text(ROOT / "docs" / "decisions" / "README.md")
    assert len(DECISIONS) >= 20
    assert re.findall(r"^- \[.*\]\((.*)\)$", index, re.MULTILINE) == [page.name for page in DECISIONS]
    for number, page in enumerate(DECISIONS, 1):
        assert page.name.startswith(f"{number:04}-") and text(page).startswith(f"# {number}. ")
        assert f"[{text(page).splitlines()[0][2:]}]" in index


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_context_decision_and_measured_consequence(page):
    assert re.findall(r"^## (.*)$", text(page), re.MULTILINE) == ["Context", "Decision", "Consequence"]
    assert all(part.strip() for part in re.split(r"^## .*$", text(page), flags=re.MULTILINE))
    assert re.search(r"\d", text(page).partition("## Consequence")[2]), "a consequence is measured"


def test_files_that_pages_name_exist():
    for page in [ROOT / "CONTRIBUTING.md", ROOT / "README.md", *DECISIONS]:
        for file in re.findall(r"`((?:genesis|tests|tools|docs|benchmarks|examples)/[\w/.]*)`", text(page)):
            assert (ROOT / file).exists(), (page.name, file)


def test_the_debugging_session_of_contributing_runs(tmp_path):
    script = tmp_path / "session.py"
    blocks = re.findall(r"```python\n(.*?)```", text(ROOT / "CONTRIBUTING.md"), re.DOTALL)
    script.write_text("\n".join(blocks), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    without, fused = map(float, run.stdout.splitlines()[:2])
    assert fused == pytest.approx(without, rel=1e-5)
    assert "matmul" in run.stdout and "for i" in run.stdout and "'plans_built': 0" in run.stdout


def test_each_note_is_a_prediction_and_a_result():
    notes = text(ROOT / "benchmarks" / "NOTES.md").partition("\n## ")[2]
    entries = re.findall(r"^- (.*)\n  Result: (.+)$", notes, re.MULTILINE)
    assert entries and len(entries) == notes.count("\n- ") and all(" Predicted: " in first for first, _ in entries)
    pages = {int(page.name[:4]) for page in DECISIONS}
    assert {int(number) for number in re.findall(r"\bD (\d+)\b", notes)} <= pages
