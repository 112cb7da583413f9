"""The stubs that are checked in are those that tools/stubs.py writes."""

import pytest

from tools.stubs import ROOT, stubs

STUBS = stubs()


@pytest.mark.parametrize("path", STUBS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_stub_is_up_to_date(path):
    assert path.read_text(encoding="utf-8") == STUBS[path], "run python tools/stubs.py"


def test_every_stub_has_a_writer():
    assert {*ROOT.glob("genesis/**/*.pyi")} == {*STUBS}
