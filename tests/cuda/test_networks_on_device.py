"""Training on the device that `--device` names is training on the CPU: the benchmark's four networks, small."""

import numpy as np
import pytest

import genesis
from benchmarks.measure import Settings
from benchmarks.networks import networks
from benchmarks.training import contestants
from tests import devices

NETWORKS = {network.title: network for network in networks(Settings(quick=True))}
pytestmark = pytest.mark.device


@pytest.fixture(autouse=True)
def _elsewhere():
    if devices.DEVICE == "cpu":
        pytest.skip("compares the CPU with --device")


@pytest.mark.parametrize("contestant", ["genesis", "genesis compiled"])
@pytest.mark.parametrize("title", NETWORKS)
def test_losses_are_the_cpus_and_a_step_is_one_call(title, contestant):
    here, there = (contestants(NETWORKS[title], device)[contestant]() for device in ("cpu", devices.DEVICE))
    expected = [here() for _ in range(4)]
    there()
    genesis.debug.reset_stats()
    np.testing.assert_allclose([there() for _ in range(3)], expected[1:], 1e-4)
    assert genesis.debug.stats()["native_calls"] == 3


def test_random_numbers_are_the_cpus():
    drawn = []
    for device in ("cpu", devices.DEVICE):
        genesis.manual_seed(3)
        drawn.append([draw(7, device=device).cpu().numpy() for draw in (genesis.rand, genesis.randn)])
    (uniform, normal), (ours, others) = drawn
    np.testing.assert_array_equal(ours, uniform)
    np.testing.assert_allclose(others, normal, 1e-6, 1e-7)
