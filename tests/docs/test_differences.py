"""docs/differences.md: every example in it is run."""

import doctest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "differences.md"


def test_examples_print_what_the_page_says():
    text = PAGE.read_text(encoding="utf-8").replace("```", "\n")  # an example ends where its block does
    test = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    said: list[str] = []
    result = doctest.DocTestRunner().run(test, out=said.append)
    assert result.attempted > 7 and not result.failed, "".join(said)
