"""A sample of PyTorch's operator database, by the NumPy references: `python -m tests.conformance` runs it all."""

import contextlib

import pytest
import torch

import genesis
from tests.conformance import operators, samples
from tests.conformance.__main__ import outcome
from tests.conformance.expected import FAILURES

ENTRIES = samples.entries()
# By kind: of which entries the first sample is compared.
SAMPLED = {
    "values": ENTRIES[::8], "methods": ENTRIES[::8], "out": ENTRIES[::8], "gradients": ENTRIES[1::16], "second": ENTRIES[2::16],
    "jvp": ENTRIES[3::16], "strided": ENTRIES[4::16], "dtypes": ENTRIES[5::32], "vmap": ENTRIES[6::16],
    "compile": ENTRIES[7::16],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", SAMPLED)
def test_operators_agree_with_torch(kind):
    failing = {}
    with contextlib.nullcontext() if kind == "compile" else genesis.eager():
        for entry in SAMPLED[kind]:
            found = outcome(lambda e: operators.CHECKS[kind](e, limit=1), entry)
            if found not in ("ok", "-") and samples.title(entry) not in FAILURES[f"operators {kind}"]:
                failing[samples.title(entry)] = found
    assert not failing


def test_expected_failures_are_entries():
    titles = {samples.title(entry) for entry in ENTRIES}
    for kind in operators.CHECKS:
        assert FAILURES[f"operators {kind}"].keys() <= titles, kind
        assert all(FAILURES[f"operators {kind}"].values())


# ---- out= ----
def test_out_is_resized_when_empty_and_returned():
    out = genesis.empty(0)
    assert genesis.add(genesis.ones(3), 1, out=out) is out
    assert out.tolist() == [2, 2, 2]


def test_out_of_another_shape_is_resized_with_a_warning():
    out = genesis.zeros(2)
    with pytest.warns(UserWarning, match=r"out= has shape \(2,\) and is resized to \(3,\)"):
        genesis.exp(genesis.zeros(3), out=out)
    assert out.tolist() == [1, 1, 1]


def test_out_writes_through_a_view_and_into_an_input():
    whole = genesis.zeros(2, 3)
    genesis.add(genesis.ones(3), genesis.ones(3), out=whole[1])
    assert whole.tolist() == [[0, 0, 0], [2, 2, 2]]
    genesis.mul(whole, whole, out=whole)
    assert whole.tolist() == [[0, 0, 0], [4, 4, 4]]


def test_out_does_not_alias_an_input():
    x, out = genesis.ones(3), genesis.empty(3)
    genesis.conj_physical(x, out=out)
    out.zero_()
    assert x.tolist() == [1, 1, 1]


def test_out_of_several_results():
    values, places = genesis.empty(0), genesis.empty(0, dtype=genesis.int64)
    found = genesis.sort(genesis.tensor([3.0, 1.0, 2.0]), out=(values, places))
    assert found.values is values and found.indices is places
    assert (values.tolist(), places.tolist()) == ([1, 2, 3], [1, 2, 0])
    with pytest.raises(ValueError, match="out= has 1 tensors for 2 results"):
        genesis.sort(genesis.ones(2), out=(values,))


def test_out_refuses_what_torch_refuses():
    x = genesis.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="one of the arguments requires grad"):
        genesis.exp(x, out=genesis.empty(2))
    with pytest.raises(RuntimeError, match="result type float32 can't be cast to the desired output type int64"):
        genesis.exp(genesis.ones(2), out=genesis.empty(2, dtype=genesis.int64))
    with pytest.raises(TypeError, match="out= takes Tensors, got list"):
        genesis.exp(genesis.ones(2), out=([1.0, 2.0],))
    with genesis.no_grad():
        assert genesis.exp(x, out=genesis.empty(2)).shape == (2,)


def test_out_none_is_no_out():
    assert genesis.add(genesis.ones(2), 1, out=None).tolist() == [2, 2]
    assert genesis.zeros(2, out=None).tolist() == [0, 0]


def test_out_within_a_compiled_function():
    @genesis.compile
    def step(x, out):
        return genesis.mul(x, 2.0, out=out)

    for number in (1.0, 2.0, 3.0):
        x, out = genesis.full((3,), number), genesis.zeros(3)
        assert step(x, out) is out
        assert out.tolist() == [2 * number] * 3


def test_meshgrid_of_uneven_extents():
    for a, b in zip(genesis.meshgrid(genesis.arange(2), genesis.arange(3), indexing="xy"),
                    torch.meshgrid(torch.arange(2), torch.arange(3), indexing="xy"), strict=True):
        assert a.tolist() == b.tolist()
