"""The machine's speeds: remembered between processes, and round where nothing sound was."""

from __future__ import annotations

import pytest

from genesis.runtime.speeds import ROUND, remember, speeds

read = speeds.__wrapped__  # as a new process does


@pytest.fixture(autouse=True)
def _cache_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(tmp_path))


def test_what_was_measured_is_read_by_the_next_process():
    assert read() == ROUND
    measured = ROUND._replace(memory=1.5e10, cached=1e6)
    path = remember(measured)
    assert path is not None and read() == measured


@pytest.mark.parametrize("content", ["", "memory", "memory 1.0", "memory -1.0", "memory fast", "nonsense", "nonsense 1.0 2.0"])
def test_a_broken_file_is_no_file(content):
    path = remember(ROUND._replace(memory=1.0))
    assert path is not None
    path.write_text(content)
    assert read() == ROUND


def test_numbers_that_cannot_be_are_not_taken():
    remember(ROUND._replace(operations=0.0))
    assert read() == ROUND
