"""`torch.utils.weak`: the same steps on torch's classes and on genesis'."""

import gc

import pytest
import torch
import torch.utils.weak

import genesis
from genesis.as_torch.finder import look_up


def steps(weak, tensor):
    x, y = tensor([1.0, 2.0]), tensor([1.0, 2.0])
    found = weak.WeakIdKeyDictionary({x: "x"})
    yield found[x], y in found, found.get(y, "none"), len(found)
    found[y] = "y"
    found[x] = "again"
    yield [found[key] for key in found], len(found), [value for _, value in found.items()]
    with pytest.raises(KeyError):
        found[tensor([1.0, 2.0])]
    reference, other = weak.WeakIdRef(y), weak.WeakIdRef(y)
    yield reference == other, hash(reference) == hash(other), reference() is y, reference == weak.WeakIdRef(x)
    del y
    gc.collect()
    yield len(found), reference() is None, reference == other
    del found[x]
    yield len(found), found.setdefault(x, 4), found.pop(x), x in found
    seen = weak.TensorWeakRef(x)
    yield seen() is x


def test_weak_dictionaries_hold_tensors_as_those_of_torch_do():
    names = "TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"
    own = type("weak", (), {name: staticmethod(look_up("torch.utils.weak", name)) for name in names})
    assert list(steps(own, genesis.tensor)) == list(steps(torch.utils.weak, torch.tensor))
