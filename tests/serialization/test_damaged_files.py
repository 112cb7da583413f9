"""Files that are damaged or crafted: `load` gives a clear error or equal values, and changes nothing else."""

import io
import pickle
import random
import zipfile

import numpy as np
import pytest
import torch

import genesis
from genesis import nn, optim, pytree


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


def records(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def zipped(contents):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return file.getvalue()


def test_mutated_files_hold_what_they_held_or_are_refused():
    content = checkpoint()
    expected = str(genesis.load(io.BytesIO(content)))
    for seed in range(400):
        file = io.BytesIO(mutated(content, random.Random(seed)))
        try:
            state = genesis.load(file)
        except (pickle.UnpicklingError, RuntimeError):
            continue
        assert str(state) == expected


@pytest.mark.parametrize("legacy", [False, True])
def test_mutated_pickles_of_torch_are_refused_or_load(legacy):
    x = torch.arange(6.0)
    state = {"x": x, "view": x[1:3], "t": x.reshape(2, 3).t(), "p": torch.nn.Parameter(x), "b": torch.tensor([True]),
             "o": torch.nn.Linear(2, 2).state_dict(), "half": x.bfloat16(), "raw": b"raw", "dtype": torch.float16}
    file = io.BytesIO()
    torch.save(state, file, _use_new_zipfile_serialization=not legacy)
    parts = {} if legacy else records(file.getvalue())
    refused = 0
    for seed in range(1000):
        if legacy:
            content = mutated(file.getvalue(), random.Random(seed))
        else:
            content = zipped(parts | {"archive/data.pkl": mutated(parts["archive/data.pkl"], random.Random(seed))})
        try:
            loaded = genesis.load(io.BytesIO(content))
        except (pickle.UnpicklingError, RuntimeError):
            refused += 1
            continue
        for tensor in [t for t in pytree.leaves_of(loaded) if isinstance(t, genesis.Tensor) and t.numel() < 100]:
            tensor.tolist()
    assert 100 < refused < 1000
    assert (genesis.ones(2) + genesis.ones(2)).tolist() == [2, 2]


def test_mutated_files_are_refused_or_load():
    content = pickle.dumps(genesis.load(io.BytesIO(checkpoint())), 5)  # the format before PyTorch's
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
    parts = records(file.getvalue())
    content = zipped(parts | {"archive/data/0": b"\x07\x00\x01"})
    assert parts["archive/data/0"] == b"\x01\x00\x01"
    assert genesis.load(io.BytesIO(content)).tolist() == [True, False, True]
    assert int(genesis.load(io.BytesIO(content)).sum()) == 2


# ---- crafted zip files: every size that a file names is checked against its storages ----
def reference(key="0", elements=4, kind=b"ctorch\nFloatStorage\n", place=b"X\x03\x00\x00\x00cpu"):
    count = b"\x8a\x08" + elements.to_bytes(8, "little", signed=True)
    return b"(X\x07\x00\x00\x00storage" + kind + b"X" + len(key).to_bytes(4, "little") + key.encode() + place + count + b"tQ"


def number(value):
    return b"\x8a\x08" + value.to_bytes(8, "little", signed=True)


def crafted(storage, offset, size, stride, flag=b"\x89"):
    numbers = [b"(" + b"".join(map(number, extents)) + b"t" for extents in (size, stride)]
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(offset) + numbers[0] + numbers[1] + flag + b"}tR."
    return io.BytesIO(zipped({"a/data.pkl": b"\x80\x02" + tensor, "a/data/0": np.arange(4, dtype=np.float32).tobytes()}))


def test_what_fits_is_loaded():
    assert genesis.load(crafted(reference(), 1, (2, 2), (2, 0))).tolist() == [[1, 1], [3, 3]]
    assert genesis.load(crafted(reference(), 0, (2, 2), (2, 1), b"\x88")).requires_grad


@pytest.mark.parametrize("file", [
    lambda: crafted(reference(), 0, (5,), (1,)), lambda: crafted(reference(), 1, (4,), (1,)),
    lambda: crafted(reference(), 0, (2, 2), (3, 1)), lambda: crafted(reference(), -1, (2,), (1,)),
    lambda: crafted(reference(), 3, (2,), (-1,)), lambda: crafted(reference(), 0, (-2, -2), (1, 1)),
    lambda: crafted(reference(), 0, (2,), (1, 1)), lambda: crafted(reference(), 1 << 62, (1,), (1,)),
    lambda: crafted(reference(), 0, (1 << 62, 1 << 62), (0, 0)), lambda: crafted(reference(), 0, (1,) * 70, (1,) * 70),
    lambda: crafted(reference(elements=5), 0, (1,), (1,)), lambda: crafted(reference(elements=1 << 60), 0, (1,), (1,)),
    lambda: crafted(reference(elements=-4), 0, (1,), (1,)), lambda: crafted(reference(key="1"), 0, (1,), (1,)),
    lambda: crafted(reference(key="../data.pkl"), 0, (1,), (1,)), lambda: crafted(reference(kind=b"N"), 0, (1,), (1,)),
    lambda: crafted(reference(kind=b"ctorch\nIntStorage\n"), 0, (1,), (1,), b"\x88"), lambda: crafted(b"N", 0, (1,), (1,)),
    lambda: crafted(reference(kind=b"ctorch.storage\nUntypedStorage\n"), 0, (1,), (1,)),
    lambda: crafted(b"K\x01Q", 0, (1,), (1,)), lambda: crafted(reference(place=b"N"), 0, (1,), (1,)),
], ids=range(21))
def test_crafted_sizes_are_refused(file):
    with pytest.raises(pickle.UnpicklingError, match="load: "):
        genesis.load(file())


@pytest.mark.parametrize("payload", [
    b"ccollections\nOrderedDict\n)R}X\x05\x00\x00\x00itemsK\x01sb.",
    b"ctorch._tensor\n_rebuild_from_type_v2\n(cos\nsystem\nctorch\nTensor\n)}tR.",
    b"ctorch._tensor\n_rebuild_from_type_v2\n(ccollections\nOrderedDict\nctorch\nTensor\n)}tR.",
    b"c__builtin__\nbytearray\n\x8a\x08" + (1 << 40).to_bytes(8, "little") + b"\x85R.",
    b"ctorch\nTensor\n)R.", b"ctorch\nTensor\n)\x81.", b"ctorch\nfloat32\n)R.", b"ctorch\nfloat32\n}X\x01\x00\x00\x00aK\x01sb.",
    b"ctorch.storage\n_load_from_bytes\nC\x01a\x85R.", b"cbuiltins\neval\nX\x01\x00\x00\x001\x85R.",
], ids=range(10))
def test_crafted_pickles_are_refused(payload):
    with pytest.raises(pickle.UnpicklingError, match="load: "):
        genesis.load(io.BytesIO(zipped({"a/data.pkl": b"\x80\x02" + payload})))
