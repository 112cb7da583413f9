"""Settings of the whole suite."""

import contextlib
import gc
import sys

import hypothesis
import hypothesis.internal.conjecture.providers
import numpy as np
import pytest

import genesis
from genesis.capture.record.traced_call import modes
from genesis.execution import plan, plan_template, verified_program
from genesis.execution.flush import FLUSH_HOOKS, flush
from genesis.lower import lower
from genesis.tensor import new_programs
from genesis.tensor.call_modes import REPLACING
from genesis.tracing.state import thread_state, unflushed
from tests import devices

collect_ignore = ["array_api/libraries.py"]  # a script, which imports SciPy's and scikit-learn's

hypothesis.settings.register_profile("suite", deadline=None, max_examples=25, derandomize=True)
hypothesis.settings.load_profile("suite")
# Examples hang on no number that the sources of genesis happen to have: to collect these takes 2.8 s with an empty cache.
hypothesis.internal.conjecture.providers._get_local_constants = hypothesis.internal.constants_ast.Constants

plan.read_or_lower = lower  # whatever was lowered here: they change what lowering looks at
plan.store = lambda *asked: None
# Every program is verified, and the memory of every run. Who holds it is searched for in the tests of that alone: a search
# goes through all objects.
verified_program.VERIFY[0], verified_program.SEARCHES[0] = True, 0
gc.set_threshold(50_000, 20, 20)  # cycles are searched for less often than by default, which took a tenth of the time
gc.disable()  # and not among what collecting the tests imports and makes: that took two fifths of its time


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", help="where tests marked `device` compute: the others run on the CPU alone")


def pytest_configure(config):
    devices.DEVICE = config.getoption("--device")
    if devices.DEVICE != "cpu" and (reason := devices.reason_for_none()):
        pytest.exit(f"--device {devices.DEVICE}: {reason}; `python -m genesis doctor` tells more", returncode=3)


def pytest_collection_modifyitems(config, items):
    if devices.DEVICE != "cpu":
        elsewhere = [item for item in items if item.get_closest_marker("device") is None]
        config.hook.pytest_deselected(items=elsewhere)
        items[:] = [item for item in items if item.get_closest_marker("device") is not None]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """What has passed is told without the words that would select it: one process has to read all that the others tell."""
    report = yield
    if report.passed:
        report.keywords = {}
    return report


def pytest_collection_finish():
    gc.freeze()
    gc.enable()
    if (torch := sys.modules.get("torch")) and not torch.cuda.is_available():
        # For each kind of device that is not there, PyTorch's own keeps the call, with its stack as text: 1.7 ms a seed.
        torch.manual_seed = torch.default_generator.manual_seed


@pytest.fixture(autouse=True, scope="module")
def _what_earlier_tests_keep_is_not_searched():
    """Plans, above all: with thousands of them the collector's search would take seconds, each time."""
    gc.collect()
    gc.freeze()


def _process_state():
    """What tests share: modes of calls, the collector, what takes the place of calls or hears of flushes, NumPy's errors."""
    return modes(), gc.isenabled(), sorted(REPLACING), len(FLUSH_HOOKS), thread_state.eager, thread_state.recorder, np.geterr()


@pytest.fixture(autouse=True)
def _nothing_is_left_behind():
    """A test that left the process in another state would decide what later ones find."""
    before = _process_state()
    yield
    assert _process_state() == before


@pytest.fixture
def by_references():
    """For tests of formulas over rows, each of which is compiled elsewhere: no kernels, which run once here."""
    with genesis.eager():
        yield


@pytest.fixture(autouse=True)
def _nothing_is_pending():
    """What an earlier test left in the open trace (a failed one's values, say) is no part of this test's program; nor does how
    many programs have met other sizes decide where it is flushed, and whether a template plans it.
    """
    new_programs._met.clear()
    plan_template._skeletons.clear()
    for trace in unflushed():
        with contextlib.suppress(Exception):
            flush(trace)
