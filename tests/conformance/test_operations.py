"""Every row of the operation table: values, dtypes, derivatives."""

import pytest

import genesis
from genesis.ops.registry import OPERATIONS, PRIMITIVES
from tests.conformance.checks import check_gradients, check_reference, check_values
from tests.conformance.samples import INTERNAL, SAMPLES, is_elementwise

ROWS = sorted(set(OPERATIONS) - INTERNAL)


def has_gradient(name):
    return name in SAMPLES or (name in PRIMITIVES and PRIMITIVES[name].grad is not None)


@pytest.mark.parametrize("name", ROWS)
def test_values_are_torchs(name):
    check_values(name)


@pytest.mark.parametrize("name", [name for name in ROWS if OPERATIONS[name].reference is not None and is_elementwise(name)])
def test_values_are_numpys(name):
    check_reference(name)


@pytest.mark.parametrize("name", [name for name in ROWS if has_gradient(name)])
def test_derivatives_are_torchs_and_finite_differences(name):
    check_gradients(name)


def test_every_row_is_public():
    assert all(callable(getattr(genesis, name)) for name in ROWS if name != "view")
