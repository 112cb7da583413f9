"""Exceptions of signal handlers that come while a call is recorded."""

import signal

import pytest

import genesis
from genesis.capture.guards.python_state import Guards


class Stop(ValueError):
    """What a handler raises."""


@pytest.fixture
def handling():
    before = signal.getsignal(signal.SIGUSR1)

    def stop(number, frame):
        raise Stop

    signal.signal(signal.SIGUSR1, stop)
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.usefixtures("handling")
def test_a_recording_ends_with_what_a_handler_raises(monkeypatch):
    code = Guards.code

    def interrupted(self, *arguments):
        signal.raise_signal(signal.SIGUSR1)
        code(self, *arguments)

    compiled = genesis.compile(lambda x: x * 2)
    with monkeypatch.context() as patch:
        patch.setattr(Guards, "code", interrupted)
        with pytest.raises(Stop):
            compiled(genesis.ones(2))
    assert compiled(genesis.ones(2)).tolist() == [2, 2] and len(compiled.entries) == 1


def test_a_users_object_that_raises_when_it_is_inspected_is_not_replayed():
    class Bad:
        def __getattr__(self, name):
            raise RuntimeError(name)

    bad = Bad()
    compiled = genesis.compile(lambda x: x * 2 if bad is not None else x)
    assert compiled(genesis.ones(2)).tolist() == [2, 2]
