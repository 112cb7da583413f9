"""The documents' code runs as written and prints what its comments promise."""

import doctest

import pytest

from tests.contract.documents import SCRIPTS, document


@pytest.mark.parametrize("name", [path.stem for path in sorted(SCRIPTS.glob("*.py"))])
def test_a_document_prints_what_its_comments_promise(name):
    printed, _ = document(name)
    promised = (SCRIPTS / f"{name}.txt").read_text(encoding="utf-8")
    checker, options = doctest.OutputChecker(), doctest.ELLIPSIS
    assert checker.check_output(promised, printed, options), checker.output_difference(
        doctest.Example("", promised), printed, options | doctest.REPORT_NDIFF)
