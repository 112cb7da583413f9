"""Files that are damaged or crafted: `load` gives a clear error or equal values, and changes nothing else."""

import io
import pickle
import random

import numpy as np
import pytest

import genesis
from genesis import nn, optim


def checkpoint():
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    model(genesis.ones(4, 3)).square().sum().backward()
    optimizer.step()
    file = io.BytesIO()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "flags": genesis.tensor([True, False]),
             "names": ("a", 1.5, None, b"raw"), "half": genesis.ones(3, dtype=genesis.bfloat16)}
    genesis.save(state, file)
    return file.getvalue()


def mutated(content, random):
    """A few bytes changed, dropped, doubled or swapped."""
    content = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 5))):
        at, kind = random.randrange(len(content)), random.randrange(4)
        if kind == 0:
            content[at] = random.randrange(256)
        elif kind == 1:
            del content[at : at + random.choice((1, 4, 40))]
        elif kind == 2:
            content[at:at] = content[at : at + random.choice((1, 8))]
        else:
            content[at] ^= 1 << random.randrange(8)
    return bytes(content)


def load_all(content, seeds):
    refused = 0
    for seed in seeds:
        try:
            state = genesis.load(io.BytesIO(mutated(content, random.Random(seed))))
        except (pickle.UnpicklingError, RuntimeError):
            refused += 1
            continue
        repr(state)  # whatever it is can be looked at
    return refused


def test_mutated_files_are_refused_or_load():
    content = checkpoint()
    facts = [(dtype.name, dtype.itemsize, dtype.category) for dtype in (genesis.float32, genesis.int64, genesis.bool)]
    methods = dict(vars(genesis.Tensor))
    assert 100 < load_all(content, range(1500)) < 1500
    assert facts == [(dtype.name, dtype.itemsize, dtype.category) for dtype in (genesis.float32, genesis.int64, genesis.bool)]
    assert methods == dict(vars(genesis.Tensor))
    np.testing.assert_array_equal(genesis.load(io.BytesIO(content))["flags"].numpy(), [True, False])


def named(module, name):
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


TENSOR, REBUILT = named("genesis.tensor.handle", "Tensor"), named("genesis.functions.methods.conversion", "_rebuilt")
FLOAT32 = named("genesis.ir.dtypes", "_named") + b"X\x07\x00\x00\x00float32\x85R"


@pytest.mark.parametrize("payload", [
    TENSOR + b"N}X\x07\x00\x00\x00__add__K\x01s\x86b0N.",
    FLOAT32 + b"N}X\x08\x00\x00\x00itemsizeK\x01s\x86b0N.",
    named("genesis.runtime.devices", "Device") + b"X\x03\x00\x00\x00cpu\x85RN}X\x04\x00\x00\x00nameK\x01s\x86b0N.",
    named("genesis.devices", "Device") + b"X\x03\x00\x00\x00cpu\x85RN}X\x04\x00\x00\x00nameK\x01s\x86b0N.",
    TENSOR + b")R.", TENSOR + b")\x81.", named("builtins", "eval") + b"X\x01\x00\x00\x001\x85R.",
    TENSOR + b"K\x01K\x02s.", FLOAT32 + b"K\x01a.",
    REBUILT + b"(" + TENSOR + b"C\x04abcd(K\x02t" + FLOAT32 + b"\x89}tR.",  # two elements in four bytes
    REBUILT + b"(" + TENSOR + b"C\x04abcd(J\xff\xff\xff\xfft" + FLOAT32 + b"\x89}tR.",  # an extent of -1
    REBUILT + b"(" + TENSOR + b"C\x04abcd(K\x01t" + FLOAT32 + b"\x89}X\x06\x00\x00\x00_arrayK\x01stR.",
    REBUILT + b"(" + TENSOR + b"C\x04abcd(K\x01t" + FLOAT32 + b"\x89}X\x05\x00\x00\x00numpyK\x01stR.",
], ids=range(13))
def test_crafted_files_are_refused(payload):
    with pytest.raises(pickle.UnpicklingError, match="load: "):
        genesis.load(io.BytesIO(b"\x80\x04" + payload))
    assert (genesis.ones(2) + genesis.ones(2)).tolist() == [2, 2] and genesis.float32.itemsize == 4
    assert str(genesis.zeros(2).device) == "cpu"


def test_bytes_of_bools_that_are_neither_0_nor_1_are_true():
    file = io.BytesIO()
    genesis.save(genesis.tensor([True, False, True]), file)
    content = file.getvalue().replace(b"\x01\x00\x01", b"\x07\x00\x01")
    assert genesis.load(io.BytesIO(content)).tolist() == [True, False, True]
    assert int(genesis.load(io.BytesIO(content)).sum()) == 2
