"""Settings of the whole suite."""

import contextlib

import hypothesis
import pytest

from genesis.execute import flush
from genesis.lower import cost, decisions
from genesis.runtime.speeds import ROUND
from genesis.thread import unflushed

hypothesis.settings.register_profile("suite", deadline=None, max_examples=40, derandomize=True)
hypothesis.settings.load_profile("suite")

cost.speeds = decisions.speeds = lambda: ROUND  # whatever was measured here: tests look at plans


@pytest.fixture(autouse=True)
def _nothing_is_pending():
    """What an earlier test left in the open trace (a failed one's values, say) is no part of this test's program."""
    for trace in unflushed():
        with contextlib.suppress(Exception):
            flush(trace)
