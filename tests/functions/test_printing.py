"""Tensors print as torch's do."""

import numpy as np
import pytest
import torch

import genesis
from tests.tolerances import to_torch

RNG = np.random.default_rng(0)
CASES = {
    "ints": [1, -20, 300],
    "int matrix": [[1, 2], [30, -4]],
    "whole floats": [1.0, 2.0, 3.0],
    "floats": [0.5, -1.25, 3.14159],
    "small": [1e-5, 1.0],
    "mixed magnitudes": [1e-3, 1e3],
    "large": [1e10, 1.0],
    "large whole": [1e9, 2e9],
    "one large": [123456.0],
    "not finite": [float("nan"), float("inf"), -float("inf"), 1.0],
    "not finite alone": [float("nan"), float("inf")],
    "not finite with fractions": [float("nan"), -float("inf"), 1.5],
    "zeros": [0.0, -0.0],
    "bools": [[True, False], [False, True]],
    "scalar": 2.5,
    "whole scalar": 2.0,
    "int scalar": 7,
    "bool scalar": True,
    "three axes": RNG.normal(size=(2, 3, 4)).astype(np.float32),
    "four axes": RNG.normal(size=(2, 1, 2, 3)).astype(np.float32),
    "long": RNG.normal(size=100).astype(np.float32),
    "long ints": np.arange(300),
    "abridged": np.arange(1001),
    "abridged matrix": RNG.normal(size=(100, 50)).astype(np.float32),
    "abridged three axes": np.arange(2000.0, dtype=np.float32).reshape(20, 2, 50),
    "float64": np.array([1.5, 2.5]),
    "int32": np.array([1, 2], np.int32),
    "uint8": np.array([[1, 255]], np.uint8),
    "float16": np.array([1.5, 65504, 1e-3], np.float16),
    "empty": np.zeros(0, np.float32),
    "empty ints": np.zeros(0, np.int64),
    "empty matrix": np.zeros((2, 0, 3), np.float32),
    "wide rows": np.full((2, 40), 12345, np.int32),
}


def expected(tensor):
    return repr(tensor).replace("torch.", "genesis.")


@pytest.mark.parametrize("case", CASES)
def test_prints_as_torch(case):
    data = CASES[case]
    theirs = to_torch(data) if isinstance(data, np.ndarray) else torch.tensor(data)
    assert repr(genesis.tensor(data)) == expected(theirs)


def test_bfloat16_prints_as_torch():
    values = [1.5, 3.1415]
    assert repr(genesis.tensor(values, dtype=genesis.bfloat16)) == expected(torch.tensor(values, dtype=torch.bfloat16))


def test_leaves_and_results_say_what_they_are():
    x = genesis.tensor([1.0, 2.0], requires_grad=True)
    assert repr(x) == "tensor([1., 2.], requires_grad=True)"
    assert repr(x * 2 + 3) == "tensor([5., 7.], grad_fn=<AddBackward>)"
    assert repr(x.detach()) == "tensor([1., 2.])"


def test_long_suffixes_go_to_their_own_line():
    x = np.full((1, 14), 1.5)
    ours, theirs = genesis.tensor(x, requires_grad=True), to_torch(x, requires_grad=True)
    assert repr(ours) == expected(theirs)


@pytest.mark.parametrize("options", [
    {"precision": 2}, {"threshold": 5, "edgeitems": 2}, {"linewidth": 40}, {"sci_mode": True}, {"sci_mode": False},
    {"profile": "short"},
])
def test_print_options_are_torchs(options):
    x = RNG.normal(size=(8, 7)).astype(np.float32) * 100
    genesis.set_printoptions(**options)
    torch.set_printoptions(**options)
    try:
        assert repr(genesis.tensor(x)) == expected(to_torch(x))
    finally:
        genesis.set_printoptions(profile="default")
        torch.set_printoptions(profile="default")


def test_format_of_a_scalar_is_that_of_its_number():
    assert f"{genesis.tensor(2.0)}" == "2.0"
    assert f"{genesis.tensor(3.14159):.2f}" == "3.14"
    assert f"{genesis.tensor([1, 2])}" == "tensor([1, 2])"


def test_tensors_of_derived_classes_show_their_names():
    texts = []
    for lib in (genesis, torch):
        tensor, parameter = type("Kind", (lib.Tensor,), {}), type("Learned", (lib.nn.Parameter,), {})
        texts.append([repr(lib.ones(2).as_subclass(tensor)), repr(parameter(lib.arange(40.0).reshape(2, 20))),
                      repr(lib.nn.Parameter(lib.ones(2))), repr(lib.nn.Buffer(lib.ones(2)))])
    assert texts[0] == texts[1] and texts[0][0] == "Kind([1., 1.])"
