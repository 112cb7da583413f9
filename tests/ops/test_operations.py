"""Every row of the operation table: values, dtypes, derivatives."""

import pytest
import torch

import genesis
from genesis.ops.registry import OPERATIONS, PRIMITIVES
from tests.ops.checks import (
    check_batches,
    check_gradients,
    check_kinks,
    check_reference,
    check_values,
    is_differentiable,
)
from tests.ops.samples import INTERNAL, NOT_DIFFERENTIATED, is_elementwise

pytestmark = pytest.mark.device
ROWS = sorted(set(OPERATIONS) - INTERNAL)
ELEMENTWISE = [name for name in ROWS if is_elementwise(name)]
KINKED = [name for name in ELEMENTWISE if PRIMITIVES[name].grad is not None and hasattr(torch, name)]


@pytest.mark.parametrize("name", ROWS)
def test_values_are_torchs(name):
    check_values(name)


@pytest.mark.parametrize("name", [name for name in ELEMENTWISE if OPERATIONS[name].reference is not None])
def test_values_are_numpys(name):
    check_reference(name)


@pytest.mark.parametrize("name", sorted(set(OPERATIONS) - set(NOT_DIFFERENTIATED)))
def test_first_and_second_derivatives_are_finite_differences(name):
    if not is_differentiable(name):
        pytest.skip("nothing that it returns requires a gradient")
    check_gradients(name)


@pytest.mark.parametrize("name", sorted(set(OPERATIONS) - set(NOT_DIFFERENTIATED)))
def test_many_examples_are_computed_as_one_by_one(name):
    if not name.startswith("bitwise"):
        check_batches(name)


@pytest.mark.usefixtures("by_references")
@pytest.mark.parametrize("name", KINKED)
def test_derivatives_at_kinks_are_torchs(name):
    check_kinks(name)


def test_every_row_is_public():
    assert all(callable(getattr(genesis, name)) for name in ROWS)
