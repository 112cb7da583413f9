"""PyTorch's samples in this library's terms, and results compared."""

import functools
import types

import ml_dtypes
import numpy as np
import torch

import genesis

NAMES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
DTYPES = {getattr(torch, name): getattr(genesis, name) for name in NAMES}
COMPLEX = {torch.complex64: genesis.complex64, torch.complex128: genesis.complex128}
DTYPES_AND_COMPLEX = DTYPES | COMPLEX | {torch.complex32: genesis.complex32}
# relative and absolute, for what two libraries compute in their own order of steps
TOLERANCES = {"float64": (1e-6, 1e-7), "float32": (1e-3, 1e-4), "float16": (2e-2, 1e-2), "bfloat16": (6e-2, 3e-2)}
TOLERANCES |= {"complex64": TOLERANCES["float32"], "complex128": TOLERANCES["float64"], "complex32": TOLERANCES["float16"]}


class UnconvertibleError(Exception):
    """A sample that holds what is outside the suite: sparse tensors, generators, more axes than NumPy's 64."""


def numpy_of(tensor):
    """The values of a tensor of torch's."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor._is_zerotensor():
        tensor = tensor.clone()
    if tensor.dtype is torch.bfloat16:
        return tensor.float().numpy().astype(ml_dtypes.bfloat16)
    if tensor.dtype is torch.complex32:
        return tensor.to(torch.complex64).numpy().astype(ml_dtypes.complex32)
    return tensor.numpy()


def strided(tensor):
    """A tensor of torch's with its strides: a view of all that its storage holds."""
    stored = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
    flat = genesis.tensor(numpy_of(stored).copy(), dtype=DTYPES_AND_COMPLEX[tensor.dtype])
    return flat.as_strided(tuple(tensor.shape), tensor.stride(), tensor.storage_offset())


def converted(value, keep_strides=False, met=None):
    """`value`, of any nesting, with this library's tensors, dtypes and devices for torch's; `met` are those made already."""
    met = {} if met is None else met
    again = functools.partial(converted, keep_strides=keep_strides, met=met)
    if isinstance(value, torch.Tensor):
        if id(value) not in met:
            met[id(value)] = _tensor(value, keep_strides)
        return met[id(value)]
    if isinstance(value, torch.dtype):
        return _known(DTYPES_AND_COMPLEX, value)
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, torch.layout | torch.memory_format):
        name = str(value).removeprefix("torch.")
        if not hasattr(genesis, name):
            raise UnconvertibleError(name)
        return getattr(genesis, name)
    if isinstance(value, torch.Generator):
        raise UnconvertibleError(type(value).__name__)
    if isinstance(value, dict):
        return {key: again(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)([again(item) for item in value])
    if isinstance(value, slice):
        return slice(again(value.start), again(value.stop), again(value.step))
    if isinstance(value, torch.nn.Module):
        return getattr(genesis.nn, type(value).__name__)()
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType) and hasattr(torch.nn.functional, value.__name__):
        return function_at(f"nn.functional.{value.__name__}")
    return value


def _tensor(value, keep_strides):
    if value.layout is not torch.strided or value.dtype not in DTYPES_AND_COMPLEX or value.is_meta or value.ndim > 64:
        raise UnconvertibleError(f"{value.layout} {value.dtype} of {value.ndim} axes on {value.device}")
    made = strided(value) if keep_strides else genesis.tensor(numpy_of(value).copy(), dtype=DTYPES_AND_COMPLEX[value.dtype])
    return made.detach().requires_grad_() if value.requires_grad else made


def _known(table, value):
    if value not in table:
        raise UnconvertibleError(str(value))
    return table[value]


def function_at(path):
    """The function at a path below `genesis`; raises AttributeError."""
    return functools.reduce(getattr, path.split("."), genesis)


def leaves(tree, kind):
    """The tensors of class `kind` in a nesting of tuples, lists and dicts."""
    if isinstance(tree, kind):
        return [tree]
    if isinstance(tree, dict):
        tree = tree.values()
    elif not isinstance(tree, tuple | list):
        return []
    return [leaf for item in tree for leaf in leaves(item, kind)]


def assert_same(ours, theirs, what="", values=True, dtypes=True, scale=1.0):
    """Equal structure, shapes, dtypes and, unless they are random, values."""
    if isinstance(theirs, tuple | list) and not isinstance(theirs, torch.Size):
        assert isinstance(ours, tuple | list), f"{what}: {type(ours).__name__} for {type(theirs).__name__}"
        assert len(ours) == len(theirs), f"{what}: {len(ours)} results for {len(theirs)}"
        for place, pair in enumerate(zip(ours, theirs, strict=True)):
            assert_same(*pair, f"{what}[{place}]", values, dtypes, scale)
        return
    if not isinstance(theirs, torch.Tensor):
        if theirs is None or isinstance(theirs, bool | int | float | complex | str | torch.Size):
            theirs = tuple(theirs) if isinstance(theirs, torch.Size) else theirs
            assert ours == theirs or (ours != ours and theirs != theirs) or not values, f"{what}: {ours} for {theirs}"
        return
    assert isinstance(ours, genesis.Tensor), f"{what}: {type(ours).__name__} for a tensor"
    assert tuple(ours.shape) == tuple(theirs.shape), f"{what}: shape {tuple(ours.shape)} for {tuple(theirs.shape)}"
    if theirs.dtype not in DTYPES_AND_COMPLEX:
        raise UnconvertibleError(str(theirs.dtype))
    if dtypes:
        assert ours.dtype is DTYPES_AND_COMPLEX[theirs.dtype], f"{what}: {ours.dtype} for {theirs.dtype}"
    if values:
        assert_close(ours.detach().numpy(force=True), numpy_of(theirs), what, scale)


def assert_close(ours, theirs, what="", scale=1.0):
    """Values within the tolerance of the dtype, NaN equal to NaN."""
    relative, absolute = TOLERANCES.get(theirs.dtype.name, (0, 0))
    if relative:
        wide = np.complex128 if theirs.dtype.name.startswith("complex") else np.float64
        ours, theirs = ours.astype(wide), theirs.astype(wide)
        np.testing.assert_allclose(ours, theirs, relative * scale, absolute * scale, err_msg=what, verbose=True)
    else:
        np.testing.assert_array_equal(ours, theirs, what)
