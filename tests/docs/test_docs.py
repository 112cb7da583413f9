"""The documents show what the commands in them print."""

import re
import subprocess
import sys
from pathlib import Path

import genesis.lower
from tests.test_architecture import FLOORS, PACKAGE

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")
ROOMS = (ROOT / "docs" / "how_it_works.md").read_text(encoding="utf-8")
MADE_UP = re.compile(r'genesis_[0-9a-f]{16}|%v\d+')  # names of kernels and registers
PROMPTS = (">>> ", "... ")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```\n", GUIDE, re.DOTALL)


def renamed(text: str) -> str:
    """`text` with made-up names numbered in the order in which they come."""
    names: dict[str, str] = {}
    return MADE_UP.sub(lambda match: names.setdefault(match[0], f"name{len(names)}"), text).strip()


def printed(*command: str) -> str:
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_made_up_names_are_told_apart():
    assert renamed(f"genesis_{'a' * 16} genesis_{'b' * 16} genesis_{'a' * 16}") == "name0 name1 name0"


def test_commands_print_what_the_guide_shows():
    assert blocks("console")
    for block in blocks("console"):
        command, shown = block.removeprefix("$ ").split("\n", 1)
        program, *arguments = command.split()
        assert renamed(printed(sys.executable if program == "python" else program, *arguments)) == renamed(shown), command


def test_sessions_print_what_the_guide_shows():
    """The sessions are one program: each goes on where the one before it ended."""
    sessions = [block.splitlines() for block in blocks("pycon")]
    programs = ["\n".join(line[4:] for line in lines if line.startswith(PROMPTS)) for lines in sessions]
    outputs = printed(sys.executable, "-c", "\nprint('next')\n".join(programs)).split("next\n")
    assert sessions
    for lines, output in zip(sessions, outputs, strict=True):
        assert renamed(output) == renamed("\n".join(line for line in lines if not line.startswith(PROMPTS)))


def named(file: str) -> Path:
    folders = [ROOT, *(ROOT / "genesis" / folder for folder in ("", "lower", "codegen/cpu"))]
    places = [folder / file for folder in folders if (folder / file).exists()]
    assert places, f"there is no {file}"
    return places[0]


def test_what_the_guide_names_is_there():
    for file in re.findall(r"`([\w/]+(?:\.py|/))`", GUIDE + ROOMS):
        named(file)
    for function, file in re.findall(r"`(\w+)`\s+in\s+`([\w/]+\.py)`", GUIDE + ROOMS):
        source = named(file).read_text(encoding="utf-8")
        assert re.search(rf"^(?:def|class) {function}\(", source, re.MULTILINE), (function, file)


def files_in(prose: str) -> set[str]:
    return set(re.findall(r"`([\w/]+\.py)`", prose))


def test_the_guide_opens_at_most_thirty_files():
    """Every file that it names: the ones to open, and the ones that its answers lead to, are the same."""
    prose = re.sub(r"^```.*?^```$", "", GUIDE, flags=re.DOTALL | re.MULTILINE)
    floors, _, answers = prose.partition("## Questions")
    to_open = files_in(" ".join(re.findall(r"^\*\*Open\*\* .*(?:\n.+)*", floors, re.MULTILINE)))
    assert 12 <= len(to_open) <= 30
    assert files_in(floors) == to_open and files_in(answers) <= to_open
    assert all((ROOT / "genesis" / file).exists() for file in to_open)


def test_the_guide_lists_the_passes_that_lowering_runs():
    passes = re.findall(r"^\d+\. .*(?:\n   .*)*", GUIDE, re.MULTILINE)
    compiler = (ROOT / "genesis" / "lower" / "__init__.py").read_text(encoding="utf-8").partition("\ndef lower(")[2]
    called = re.findall(r"\b(\w+)\(", compiler.partition("\ndef ")[0])
    listed = [name for line in passes for name in re.findall(r"`(\w+)`", line)]
    assert listed and set(listed) <= set(called)
    plain = {"Lowered", "base_of", "layout_of", "_check"}  # what is no pass
    assert {name for name in called if name in vars(genesis.lower)} == {*listed, *plain}


def test_what_the_guide_says_that_files_hold_is_in_them():
    for file, names in re.findall(r"`([\w/]+\.py)`\s+\((`[^)]*)\)", GUIDE + ROOMS):
        source = named(file).read_text(encoding="utf-8")
        for name in re.findall(r"`([\w.]+)`", names):
            assert all(re.search(rf"^ *(?:class|def) {part}\b", source, re.MULTILINE) for part in name.split(".")), (name, file)


def test_the_page_of_rooms_is_short_and_names_every_folder_in_the_order_of_imports():
    assert len(re.findall(r"^\d+\. `", ROOMS, re.MULTILINE)) == 10 and ROOMS.count("\n") <= 150
    folders = [floor for floor in FLOORS if floor and (PACKAGE / floor).is_dir()]
    assert re.findall(r"\*\*`(\w+)/`\*\*", ROOMS) == folders
