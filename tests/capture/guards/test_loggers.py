"""Loggers: that they do not write is guarded, so that messages which nobody sees do not prevent replays."""

import logging
import types

import numpy as np
import pytest

import genesis

X = genesis.arange(3).float()
log = logging.getLogger(__name__)
below = log.getChild("below")
LEVEL, FACTOR = "level", "factor"

WAYS = {
    "an attribute of a logger by its name": (lambda x: x * getattr(log, LEVEL), lambda: log.setLevel(log.level + 1)),
    "whether a logger writes": (lambda x: x * (2 if log.isEnabledFor(30) else 3), lambda: log.setLevel(40)),
    "whether a logger writes, by its parent": (lambda x: x * (2 if below.isEnabledFor(30) else 3), lambda: log.setLevel(40)),
    "whether any logger writes": (lambda x: x * (2 if below.isEnabledFor(30) else 3), lambda: logging.disable(40)),
}


@pytest.fixture(autouse=True)
def _as_it_was():
    log.setLevel(2)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("way", WAYS)
def test_a_change_of_a_logger_is_seen(way):
    function, change = WAYS[way]
    compiled = genesis.compile(function)
    for act in (lambda: None, lambda: None, lambda: None, change, lambda: None, lambda: None):
        act()
        np.testing.assert_array_equal(compiled(X).numpy(), function(X).numpy())


def test_messages_of_a_level_that_is_not_written_do_not_prevent_replays_until_they_are(monkeypatch):
    def call(x):
        log.debug("%s of %s", "call", x.shape)
        log.log(15, "again")
        return x * 2

    written = []
    monkeypatch.setattr(log, "filter", lambda record: written.append(record.getMessage()))
    log.setLevel(20)
    compiled = genesis.compile(call)
    for _ in range(4):
        assert compiled(X).tolist() == [0, 2, 4]
    [entry] = compiled.entries
    assert entry.replays == 3 and not written
    log.setLevel(12)
    for _ in range(3):
        assert compiled(X).tolist() == [0, 2, 4]
    assert written == ["again"] * 3 and entry.replays == 3


def test_loggers_among_objects_whose_attributes_are_looked_up_by_computed_names():
    handler = logging.StreamHandler()  # has a lock and a stream
    log.addHandler(handler)
    try:
        settings = types.SimpleNamespace(factor=2.0)

        def call(x):
            for name in (FACTOR,):
                x = x * getattr([settings][0], name)
            return x if log.disabled else x + 0

        compiled, x = genesis.compile(call), genesis.ones(2)
        assert [compiled(x).tolist() for _ in range(3)] == [[2, 2]] * 3
        assert len(compiled.entries) == 1 and not compiled.refusals, compiled.refusals
        settings.factor = 3.0
        assert compiled(x).tolist() == [3, 3]
        log.disabled = True
        assert compiled(x).tolist() == [3, 3] and compiled.missed.endswith("log.disabled")
    finally:
        log.removeHandler(handler)
        log.disabled = False
