"""Arguments and methods of layers under PyTorch's names, in PyTorch's order; beside torch's."""

import inspect

import pytest
import torch

import genesis
from tests.tolerances import assert_close

BOTH = pytest.mark.parametrize("lib", [genesis, torch], ids=["genesis", "torch"])
OLD = {"size_average", "reduce", "min_value", "max_value"}  # which PyTorch has given up for `reduction`, `min_val`, `max_val`
MORE = {"DataParallel", "Module", "Container"}  # takes more, or anything
KINDS = sorted(name for name, kind in vars(torch.nn).items() if isinstance(kind, type) and hasattr(genesis.nn, name))


def names_of(kind):
    parameters = inspect.signature(kind).parameters
    return [name for name, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def test_arguments_of_layers():
    for name in KINDS:
        have, want = ([argument for argument in names_of(getattr(library.nn, name)) if argument not in OLD]
                      for library in (genesis, torch))
        assert not want or have == want or name in MORE, name


@BOTH
def test_tables_that_are_given(lib):
    layer = lib.nn.Embedding(2, 3, _weight=lib.arange(6.0).reshape(2, 3), _freeze=True)
    assert layer(lib.tensor([1])).tolist() == [[3, 4, 5]] and not layer.weight.requires_grad
    with pytest.raises((ValueError, AssertionError)):
        lib.nn.Embedding(2, 3, _weight=lib.zeros(3, 2))


@BOTH
def test_dictionaries_of_parameters(lib):
    weights = lib.nn.ParameterDict({"a": lib.zeros(1), "b": lib.ones(1)})
    assert weights.get("c", 5) == 5 and weights.setdefault("c", lib.ones(2)).shape == (2,)
    assert weights.popitem()[0] == "c" and weights.copy()["a"] is weights["a"]
    assert [*weights.fromkeys(["x", "y"], lib.zeros(1))] == ["x", "y"]
    assert [*(weights | lib.nn.ParameterDict({"d": lib.zeros(1)}))] == ["a", "b", "d"]
    weights.clear()
    assert len(weights) == 0
    with pytest.raises(KeyError):
        weights.popitem()
    modules = lib.nn.ModuleDict({"a": lib.nn.ReLU()})
    modules.clear()
    assert not [*modules.children()]


@BOTH
def test_containers_are_extended_in_place_and_reject_what_they_cannot_hold(lib):
    made = lib.nn.ParameterDict({"b": lib.zeros(1), "a": lib.zeros(2)})
    made |= {"d": lib.zeros(1), "c": lib.zeros(1)}
    made.update([("f", lib.zeros(1)), ("e", lib.zeros(1))])
    assert [*made] == ["a", "b", "c", "d", "f", "e"] == [*reversed([*reversed(made)])]
    listed = lib.nn.ParameterList([lib.ones(1)])
    listed += [lib.ones(2)]
    assert len(listed) == 2
    with pytest.raises(TypeError):
        listed.extend(lib.ones(3))
    with pytest.raises(TypeError):
        listed.add_module(None, lib.nn.ReLU())
    with pytest.raises(KeyError):
        lib.nn.ModuleDict()[""] = lib.nn.ReLU()
    with pytest.raises(TypeError):
        lib.nn.Module().register_buffer("scale", 5)
    with pytest.raises(TypeError):
        lib.nn.Unflatten(1, (2, 5, 5.0))
    with pytest.raises(TypeError):
        lib.nn.Linear(2, 3).to(lib.ones(1, dtype=lib.int64))
    assert lib.nn.BatchNorm1d(2).to(lib.ones(1, dtype=lib.float64)).num_batches_tracked.dtype == lib.int64
    with pytest.raises(RuntimeError):
        lib.nn.Transformer(8, 2, 1, 1, 8)(lib.ones(3, 1, 8), lib.ones(2, 2, 8))
    with pytest.raises(ValueError, match="in1_features"):
        lib.nn.Bilinear(0, 3, 4)
    for cut in ((-5, 0), (-2, -3), (-5, 3)):
        with pytest.raises(RuntimeError):
            lib.nn.functional.pad(lib.ones(1, 4), cut)
    with pytest.raises(RuntimeError):
        lib.nn.PixelShuffle(-1)(lib.ones(1, 9, 3, 3))
    with pytest.raises(RuntimeError):
        lib.nn.functional.triplet_margin_loss(lib.ones(5, 10), lib.ones(5, 10), lib.ones(10))
    with pytest.raises(AssertionError):
        lib.nn.MultiheadAttention(4, 2)(lib.ones(3, 1, 4), lib.ones(3, 4), lib.ones(3, 4))


@BOTH
def test_batches_and_outputs_without_elements_have_gradients(lib):
    empty, x = (lib.ones(*shape, requires_grad=True) for shape in ((0, 2, 8, 8), (1, 2, 8, 8)))
    pooled = (lib.nn.functional.fractional_max_pool2d(empty, 2, output_size=4), lib.nn.FractionalMaxPool2d(2, (0, 3))(x))
    assert [y.shape for y in pooled] == [(0, 2, 4, 4), (1, 2, 0, 3)] and all(y.requires_grad for y in pooled)
    x.gather(1, lib.zeros(0, 2, 8, 8, dtype=lib.int64)).sum().backward()
    assert not x.grad.any()


@BOTH
def test_sequences_to_pad_are_a_tensors_rows_or_any_iterable(lib):
    pad = lib.nn.utils.rnn.pad_sequence
    assert pad(lib.arange(6).reshape(3, 2)).tolist() == [[0, 2, 4], [1, 3, 5]]
    assert pad(lib.ones(n) for n in (2, 1)).tolist() == [[1, 1], [1, 0]]
    with pytest.raises(RuntimeError):
        pad(5)


@BOTH
def test_targets_of_other_ranks_than_the_pairs_are_refused(lib):
    loss = lib.nn.functional.cosine_embedding_loss
    assert loss(lib.ones(4), lib.ones(4), lib.ones(())).shape == ()
    for shape, target in (((5, 2), (5, 1)), ((5,), (5,)), ((2, 5), ())):
        with pytest.raises(RuntimeError):
            loss(lib.ones(shape), lib.ones(shape), lib.ones(target))


@pytest.mark.parametrize("p", [2.0, 3.0, 1.0, 0.5, -1.0, float("inf"), -float("inf")])
def test_distances_of_equal_points_and_of_any_order_are_torchs(p):
    found = []
    for lib in (genesis, torch):
        x = lib.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 4.0]], requires_grad=True)
        distance = lib.nn.functional.pairwise_distance(x, lib.tensor([[1.0, 2.0, 3.0], [4.0, 2.0, 4.0]]), p, eps=0.0)
        distance.sum().backward()
        found.append([distance, x.grad])
    assert_close(*found)


@BOTH
def test_first_values_and_devices(lib):
    assert lib.nn.init.constant_(lib.empty(2), val=3.0).tolist() == [3, 3]
    assert lib.nn.Bilinear(2, 3, 4, device="cpu", dtype=lib.float64).bias.dtype == lib.float64
