"""Random programs give one answer however they run: operation by operation, lazily fused, or compiled and replayed.

A failure shows the program as a script that can be run.
"""

import os
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import genesis
import genesis.nn.functional as F
from tests.fuzz.lines import written
from tests.fuzz.sources import REFUSALS, Writer, jittered, numbers

# GENESIS_FUZZ=5000 runs that many programs, new ones each time.
EXAMPLES = int(os.environ.get("GENESIS_FUZZ", "0"))
FUZZ = settings(
    max_examples=EXAMPLES or 20, derandomize=not EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck),
    database=None, phases=[Phase.generate, Phase.shrink],
)
CALLS = 4


def outcome(w: Writer, wrap=lambda program: program, jitter=False, closure=False):
    """What several calls of the program return and see, and what they leave in its inputs and their gradients.

    The inputs are globals of a `closure`, and the same in all calls; else the second half of the calls has others.
    """
    scope = {"genesis": genesis, "F": F, "np": np, "jittered": jittered}
    exec(w.source(jitter, closure), scope)
    program, found = wrap(scope["program"]), {}
    genesis.manual_seed(0)
    for k in range(CALLS):
        if k == 0 or (k >= CALLS // 2 and not closure):
            scope.update(row=k % 3, numbers=lambda seed, *form, k=k: numbers(seed + 100 * k, *form))
            for line in w.inputs:
                exec(line.text, scope)
        values, seen = program(*([] if closure else [scope[line.target] for line in w.inputs]))
        states = {line.target: scope[line.target] for line in w.inputs}
        grads = {f"{name}.grad": scope[name].grad for name in w.leaves}
        found.update({f"{name} of call {k}": _copied(value) for name, value in {**values, **states, **grads}.items()})
        found.update({f"seen[{i}] of call {k}": np.array(value) for i, value in enumerate(seen)})
    return found


def _copied(value):
    return np.array(np.nan) if value is None else value.detach().numpy().copy()


def differences(have, want, nearby):
    """Where two outcomes differ by more than rounding explains; `nearby` is the outcome with other rounding errors."""
    sizes = [np.max(np.abs(np.nan_to_num(v.astype(np.float64))), initial=1.0) for v in want.values()]
    single = any(v.dtype == np.float32 for v in want.values())
    floor = max(sizes) * (2e-5 if single else 1e-11)
    for name, expected in want.items():
        got = have[name]
        if got.shape != expected.shape or got.dtype != expected.dtype:
            yield f"{name}: {got.dtype}{got.shape}, want {expected.dtype}{expected.shape}"
            continue
        a, b = got.astype(np.float64), expected.astype(np.float64)
        bound = 0.0
        if expected.dtype.kind == "f":
            spread = np.max(np.abs(nearby[name] - b), initial=0.0)
            bound = floor + 30 * spread if np.isfinite(spread) else np.inf
        with np.errstate(invalid="ignore"):
            near = (np.abs(a - b) <= bound) | (a == b) | (np.isnan(a) & np.isnan(b))
        if not near.all():
            yield f"{name}: {got!r}, want {expected!r}"


@st.composite
def programs(draw):
    return written(lambda low, high: draw(st.integers(low, high)), draw(st.integers(1, 16)))


@pytest.fixture(autouse=True)
def threads_restored():
    before = genesis.get_num_threads()
    yield
    genesis.set_num_threads(before)


def check(w: Writer, closure: bool, wrap) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            with genesis.eager():
                want = outcome(w, closure=closure)
                nearby = outcome(w, jitter=True, closure=closure)
        except REFUSALS:
            assume(False)
        found = list(differences(outcome(w, wrap, closure=closure), want, nearby))
    assert not found, "\n".join(found[:3])


@FUZZ
@given(programs(), st.integers(1, 2))
def test_lazily_fused(program, threads):
    genesis.set_num_threads(threads)
    check(program, False, lambda function: function)


@FUZZ
@given(programs(), st.booleans())
def test_compiled(program, closure):
    check(program, closure, genesis.compile)
