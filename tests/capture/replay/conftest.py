"""Settings of the tests of replays."""

import math

import pytest

from genesis.capture.replay import settling


@pytest.fixture(autouse=True)
def any_machine(monkeypatch):
    """Programs may take any time: on a busy machine small ones take long, and then Python replays them."""
    monkeypatch.setattr(settling, "LONGEST", math.inf)
