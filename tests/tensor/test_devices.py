"""Several devices: what is on one stays there, what is copied has its gradient returned, and nothing else changes."""

import copy
import pickle
import re
import threading

import numpy as np
import pytest

import genesis
from genesis import nn
from tests.tolerances import assert_close

ONE, TWO = genesis.device("cpu:1"), genesis.device("cpu:2")


def vector(*values, **options):
    return genesis.tensor([float(v) for v in values], **options)


# ---- names ----


def test_a_device_has_one_object_and_several_spellings():
    assert genesis.device("cpu:0") is genesis.device("cpu") is genesis.device("cpu", 0)
    assert genesis.device("cpu", 1) is ONE and genesis.device(ONE) is ONE
    assert ONE == "cpu:1" and ONE != "cpu" and ONE != TWO and genesis.device("cpu") == "cpu:0"
    assert (ONE.type, ONE.index, str(ONE), repr(ONE)) == ("cpu", 1, "cpu:1", "device(type='cpu', index=1)")
    assert pickle.loads(pickle.dumps(ONE)) is ONE and copy.deepcopy(TWO) is TWO


@pytest.mark.parametrize("name", ["cuda:x", "cpu:64", "cpu:-1", "cpu:x", "cpu:01", "", "gpu:0"])
def test_other_devices_do_not_exist(name):
    with pytest.raises(ValueError, match=f"device: '{name}' is not available"):
        genesis.device(name)


@pytest.mark.parametrize("name", ["cuda:63", "mps", "xpu"])
def test_a_gpu_that_is_not_here_is_refused_where_it_is_used(name):
    absent = genesis.device(name)
    assert absent == genesis.device(name) and absent != ONE and hash(absent) == hash(genesis.device(name))
    assert absent == name if ":" in name else absent.type == name
    uses = (lambda: genesis.zeros(2, device=absent), lambda: genesis.ones(1).to(absent), lambda: nn.Linear(1, 1).to(absent),
            lambda: genesis.Generator(absent))
    for use in uses:
        with pytest.raises(ValueError, match=f"device: '{name}.*is not available"):
            use()
    with absent, pytest.raises(ValueError, match="is not available"):
        genesis.rand(2)


def test_new_tensors_go_to_the_default_device():
    x = vector(1, 2, 3)
    with ONE as inner, TWO:
        assert genesis.get_default_device() is TWO and inner is ONE
        assert genesis.zeros(2).device is genesis.rand(2).device is nn.Linear(2, 2).weight.device is TWO
        assert x[[0, 2]].device == "cpu" and x[[0, 2]].tolist() == [1, 3]
    genesis.set_default_device("cpu:1")
    assert genesis.arange(3).device is ONE
    genesis.set_default_device(None)


def test_compiled_functions_make_tensors_on_the_default_device_of_the_call():
    make = genesis.compile(lambda: genesis.zeros(2) + 1)
    assert [str(make().device) for _ in range(2)] == ["cpu"] * 2
    with ONE:
        assert [str(make().device) for _ in range(2)] == ["cpu:1"] * 2
    assert make().device == "cpu"


def test_a_device_as_context_is_the_default_of_its_thread_alone():
    found = []
    with genesis.device("cpu:1"):
        other = threading.Thread(target=lambda: found.append(genesis.zeros(1).device))
        other.start()
        other.join()
        with genesis.device("cpu:2"):
            found.append(genesis.zeros(1).device)
        found.append(genesis.zeros(1).device)
    assert [str(device) for device in found] == ["cpu", "cpu:2", "cpu:1"] and str(genesis.zeros(1).device) == "cpu"
    assert genesis.arange(3).device == "cpu"


@pytest.mark.parametrize("make", [
    lambda d: nn.Linear(2, 3, device=d), lambda d: nn.Conv2d(1, 2, 3, device=d), lambda d: nn.Embedding(3, 2, device=d),
    lambda d: nn.LayerNorm(3, device=d), lambda d: nn.BatchNorm1d(3, device=d), lambda d: nn.GroupNorm(1, 3, device=d),
    lambda d: nn.MultiheadAttention(4, 2, device=d), lambda d: nn.TransformerEncoderLayer(4, 2, 8, device=d),
])
def test_layers_are_made_where_they_are_wanted(make):
    layer = make(ONE)
    assert {t.device for t in (*layer.parameters(), *layer.buffers())} == {ONE}


# ---- where results are ----

MADE = {
    "tensor": lambda d: genesis.tensor([1, 2], device=d),
    "Tensor": lambda d: genesis.Tensor([1, 2], d, genesis.float32),
    "as_tensor": lambda d: genesis.as_tensor(np.ones(3), device=d),
    "full": lambda d: genesis.full((2,), 7, device=d),
    "full of a tensor": lambda d: genesis.full((2,), genesis.tensor(7), device=d),
    "zeros": lambda d: genesis.zeros(2, device=d),
    "zeros_like": lambda d: genesis.zeros_like(genesis.ones(2, device=d)),
    "arange": lambda d: genesis.arange(3, device=d),
    "linspace": lambda d: genesis.linspace(0, 1, 3, device=d),
    "eye": lambda d: genesis.eye(2, device=d),
    "tril_indices": lambda d: genesis.tril_indices(2, 2, device=d),
    "rand": lambda d: genesis.rand(2, device=d),
    "randn_like": lambda d: genesis.randn_like(genesis.ones(2, device=d)),
    "randint": lambda d: genesis.randint(5, (2,), device=d),
    "randperm": lambda d: genesis.randperm(4, device=d),
    "normal": lambda d: genesis.normal(genesis.zeros(2, device=d), 1.0),
    "bernoulli": lambda d: genesis.bernoulli(genesis.rand(2, device=d)),
    "multinomial": lambda d: genesis.multinomial(genesis.ones(3, device=d), 2),
    "new_zeros": lambda d: genesis.ones(2, device=d).new_zeros(3),
    "new_tensor": lambda d: genesis.ones(2, device=d).new_tensor([1, 2]),
    "nonzero": lambda d: genesis.ones(2, device=d).nonzero(),
    "unique": lambda d: genesis.unique(genesis.ones(2, device=d)),
    "view": lambda d: genesis.ones(2, 3, device=d).T[1:],
    "detach": lambda d: genesis.ones(2, device=d, requires_grad=True).detach(),
    "cat": lambda d: genesis.cat([genesis.ones(2, device=d), genesis.zeros(1, device=d)]),
    "where": lambda d: genesis.where(genesis.ones(2, device=d) > 0, 1.0, genesis.tensor(2.0)),
    "index": lambda d: genesis.arange(4, device=d)[genesis.tensor([2, 0])],
    "index list": lambda d: genesis.arange(4, device=d)[[2, 0]],
    "mask": lambda d: genesis.arange(4, device=d)[genesis.arange(4, device=d) > 1],
    "index_fill": lambda d: genesis.ones(3, device=d).index_fill(0, genesis.tensor([1], device=d), 5.0),
    "number": lambda d: 1 - genesis.ones(2, device=d) * 2,
    "array": lambda d: genesis.ones(2, device=d) + np.ones(2, np.float32),
    "to like": lambda d: genesis.ones(2).to(genesis.zeros(1, device=d)),
    "sent on": lambda d: genesis.ones(2, device=TWO).to(d),
    "Parameter": lambda d: nn.Parameter(genesis.ones(2, device=d)),
    "deepcopy": lambda d: copy.deepcopy(genesis.ones(2, device=d)),
    "pickle": lambda d: pickle.loads(pickle.dumps(genesis.ones(2, device=d))),
    "init": lambda d: nn.init.normal_(genesis.empty(2, device=d)),
}


@pytest.mark.parametrize("name", MADE)
def test_results_are_on_the_device_and_have_the_values_of_the_cpu(name):
    genesis.manual_seed(3)
    here = MADE[name](genesis.device("cpu"))
    genesis.manual_seed(3)
    there = MADE[name](ONE)
    assert here.device == "cpu" and there.device is ONE and there.cpu().device == "cpu"
    assert_close(there, here)


def test_a_tensor_that_is_there_is_not_copied():
    x = genesis.ones(2, device=ONE)
    assert x.to("cpu:1") is x and x.to(ONE, copy=True) is not x
    y = genesis.ones(2)
    assert y.cpu() is y and y.to("cpu:0") is y


def test_a_copy_is_a_copy():
    x = vector(1, 2)
    y = x.to(ONE)
    x.add_(1)
    y[0] = 7
    assert x.tolist() == [2, 3] and y.tolist() == [7, 2]


def test_print_names_the_device_as_torch_does():
    assert repr(vector(1, device=ONE)) == "tensor([1.], device='cpu:1')"
    assert repr(genesis.zeros(0, 2, device=ONE)) == "tensor([], device='cpu:1', size=(0, 2))"
    assert repr(vector(1, device=TWO, requires_grad=True)) == "tensor([1.], device='cpu:2', requires_grad=True)"


# ---- what does not mix ----

MIXED = {
    "add": lambda: vector(1, 2) + vector(1, 2, device=ONE),
    "matmul": lambda: genesis.ones(2, 2, device=TWO) @ genesis.ones(2, 2, device=ONE),
    "cat": lambda: genesis.cat([vector(1), vector(1, device=ONE)]),
    "linear": lambda: nn.Linear(2, 2)(genesis.ones(1, 2, device=ONE)),
    "mul": lambda: vector(1, 2) * genesis.tensor(2.0, device=ONE),  # 0-d tensors come from the CPU alone
    "in-place": lambda: genesis.tensor(1.0).add_(genesis.tensor(1.0, device=ONE)),
    "grad": lambda: setattr(vector(1, device=ONE, requires_grad=True), "grad", vector(1)),
    "backward": lambda: (vector(1, 2, device=ONE, requires_grad=True) * 2).backward(vector(1, 1)),
}


@pytest.mark.parametrize("name", MIXED)
def test_tensors_of_two_devices_raise(name):
    with pytest.raises(RuntimeError, match=f"(?s){name}.*cpu:1"):
        MIXED[name]()


def test_numbers_on_the_cpu_mix_with_all_and_take_their_gradient_home():
    scale = genesis.tensor(3.0, requires_grad=True)
    y = (vector(1, 2, device=ONE) * scale).sum()
    assert y.device is ONE
    y.backward()
    assert scale.grad.item() == 3 and scale.grad.device == "cpu"


def test_copy_crosses_devices_and_a_setitem_takes_lists():
    x = genesis.zeros(3, device=ONE)
    x.copy_(vector(1, 2, 3))
    x[1:] = vector(8, 9, device=TWO)
    assert x.tolist() == [1, 8, 9] and x.device is ONE
    x[genesis.tensor([0, 2])] = [5.0, 6.0]
    x[genesis.tensor([False, True, False])] = 0.0
    assert x.tolist() == [5, 0, 6] and x.device is ONE


def test_index_errors_on_a_device_name_the_line():
    x = genesis.arange(3, device=ONE)
    wrong = x[genesis.tensor([3], device=ONE)]
    good = x * 2
    with pytest.raises(IndexError, match=re.escape(__file__)):
        wrong.tolist()
    assert good.tolist() == [0, 2, 4]
