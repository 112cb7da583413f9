"""`torch._foreach_*`: what a list of tensors becomes is what it becomes in PyTorch."""

import numpy as np
import pytest
import torch

import genesis
from genesis.as_torch.finder import look_up
from genesis.as_torch.stand_ins.foreach import FOREACH

VALUES = [np.array([0.25, 0.5], np.float32), np.array([[0.75]], np.float32)]
ONE, LIST, NUMBER, NUMBERS = "others", "list", 0.5, [0.5, 2.0]


def lists(lib):
    return [lib.tensor(value) for value in VALUES]


def agree(name, *arguments, **named):
    found = []
    for lib, function in ((genesis, look_up("torch", name)), (torch, getattr(torch, name))):
        tensors = lists(lib)
        given = [lists(lib) if a is LIST else lib.tensor(2.0) if a is ONE else a for a in arguments]
        result = function(tensors, *given, **named)
        found.append([[t.numpy() for t in result], [t.numpy() for t in tensors], isinstance(result, tuple)])
    (have, left, tuples), (want, left_there, tuples_there) = found
    for a, b in zip(have + left, want + left_there, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    assert tuples == tuples_there


def test_every_name_of_pytorchs_is_there():
    assert sorted(FOREACH) == [name for name in dir(torch) if name.startswith("_foreach_")]


@pytest.mark.usefixtures("by_references")
@pytest.mark.parametrize("name", sorted(FOREACH))
def test_functions_of_lists_alone(name):
    try:
        getattr(torch, name)(lists(torch))
    except TypeError:
        pytest.skip("it takes more than a list")
    agree(name)


@pytest.mark.usefixtures("by_references")
@pytest.mark.parametrize("end", ["", "_"])
def test_numbers_tensors_and_lists_beside_them(end):
    for name in ("add", "sub", "mul", "div", "clamp_min", "maximum", "minimum", "pow"):
        for other in (NUMBER, NUMBERS, LIST, *([ONE] if name in ("add", "mul", "div") else [])):
            agree(f"_foreach_{name}{end}", other)
    agree(f"_foreach_add{end}", LIST, alpha=3)
    agree(f"_foreach_lerp{end}", LIST, weight=0.25)
    for scales in ((), (2.0,), ([2.0, 3.0],)):
        agree(f"_foreach_addcdiv{end}", LIST, LIST, *scales)
        agree(f"_foreach_addcmul{end}", LIST, LIST, *scales)
    agree(f"_foreach_addcmul{end}", LIST, LIST, value=0.5)
    agree("_foreach_norm", 1)
    agree("_foreach_powsum", 3)
    agree("_foreach_copy_", LIST)
    assert [t.tolist() for t in look_up("torch", "_foreach_pow")(2.0, lists(genesis))] == [
        t.tolist() for t in torch._foreach_pow(2.0, lists(torch))]


def test_lists_of_other_lengths_and_empty_ones_are_refused():
    with pytest.raises(RuntimeError, match="a list of 1 beside one of 2 tensors"):
        look_up("torch", "_foreach_add")(lists(genesis), lists(genesis)[:1])
    with pytest.raises(RuntimeError, match="want one at least"):
        look_up("torch", "_foreach_add")([], [])


@pytest.mark.parametrize("name", ["mul", "zero", "addcmul"])
def test_a_leaf_among_them_is_refused_before_any_is_written_to(name):
    call = look_up("torch", f"_foreach_{name}_")
    plain, leaf = genesis.ones(2), genesis.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf tensor"):
        call([plain, leaf], *{"mul": [2.0], "zero": [], "addcmul": [[genesis.ones(2)] * 2] * 2}[name])
    assert plain.tolist() == [1, 1]
