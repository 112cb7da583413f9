"""Collating: a list of samples becomes one batch of the same structure."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from genesis.functions.methods.conversion import values_of
from genesis.ir.annotations import AnyFunction, Tree
from genesis.ir.dtypes import float64
from genesis.ir.errors import ArgumentError
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import Tensor
from genesis.tensor.modes import is_grad_enabled
from genesis.utils.data.dataset import Subset, TensorDataset


def default_collate(batch: Sequence[Tree]) -> Tree:
    """The batch of a list of samples: tensors, arrays and numbers are stacked along a new first axis.

    Dicts, named tuples, dataclasses and lists keep their type and tuples become lists, collated part by part; strings
    stay a list, or form a tuple where the samples are sequences. Python floats become float64. `default_collate_fn_map`
    has a function for each leaf class; users may add classes. Raises TypeError for samples of other types, ValueError if
    shapes or lengths differ.

    >>> default_collate([{"x": genesis.ones(2), "label": 3}, {"x": genesis.zeros(2), "label": 4}])
    {'x': tensor([[1., 1.],
            [0., 0.]]), 'label': tensor([3, 4])}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: Sequence[Tree], *, collate_fn_map: Kinds | None = None) -> Tree:
    """As `default_collate`; samples of a class in `collate_fn_map` use its function, called with (batch, collate_fn_map=)."""
    first, kinds = batch[0], collate_fn_map or {}
    function = kinds.get(type(first)) or next((kinds[kind] for kind in kinds if isinstance(first, kind)), None)
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)
    kind: Any = list
    if isinstance(first, Sequence):
        kind = tuple  # strings of sequences form tuples, those of dicts lists
        if any(len(sample) != len(first) for sample in batch):
            raise ArgumentError(f"default_collate: samples have {sorted({len(s) for s in batch})} parts; want as many in each")
    return _by_parts(
        first, lambda read: collate(kind([read(sample) for sample in batch]), collate_fn_map=collate_fn_map), "default_collate")


def collate_tensor_fn(batch: Sequence[Tensor], *, collate_fn_map: Kinds | None = None) -> Tensor:
    """The tensors stacked."""
    return _stacked(batch)


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: Kinds | None = None) -> Tensor:
    """Arrays and NumPy scalars, stacked."""
    if batch[0].dtype.kind not in "biufV":  # V: bfloat16
        raise TypeError(f"default_collate: cannot put arrays of {batch[0].dtype} into one batch")
    return from_data(_same_shapes([np.asarray(sample) for sample in batch]))


collate_numpy_scalar_fn = collate_numpy_array_fn


def collate_float_fn(batch: Sequence[float], *, collate_fn_map: Kinds | None = None) -> Tensor:
    """Floats as float64."""
    return from_data(list(batch), float64)


def collate_int_fn(batch: Sequence[int], *, collate_fn_map: Kinds | None = None) -> Tensor:
    """Integers, and bools."""
    return from_data(list(batch))


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: Kinds | None = None) -> Sequence[Any]:
    """The strings themselves."""
    return batch


Kinds = dict[Any, Callable[..., Any]]
default_collate_fn_map: Kinds = {  # users may add classes
    Tensor: collate_tensor_fn, np.ndarray: collate_numpy_array_fn, str: collate_str_fn, bytes: collate_str_fn,
    np.generic: collate_numpy_array_fn, int: collate_int_fn, float: collate_float_fn,
}


def default_convert(data: Tree) -> Tree:
    """A sample with arrays converted to tensors and tuples to lists: a loader's default without batches.

    >>> default_convert((np.array([1.0, 2.0]), "name"))
    [tensor([1., 2.], dtype=genesis.float64), 'name']
    """
    if isinstance(data, np.ndarray | np.generic) and data.dtype.kind in "biufV":
        return from_data(data)
    try:
        return _by_parts(data, lambda read: default_convert(read(data)), "default_convert")
    except TypeError:
        return data


def _by_parts(first: Tree, part: Callable[[AnyFunction], Tree], name: str) -> Tree:
    """An object structured like `first`, made of `part(read)`, where `read` gets one part of a sample."""
    if isinstance(first, Mapping):
        made = {key: part(lambda sample, key=key: sample[key]) for key in first}  # type: ignore[misc]
        if not isinstance(first, MutableMapping):
            return made
        result = copy.copy(first)
        result.update(made)
        return result
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*[part(lambda sample, i=i: sample[i]) for i in range(len(first))])  # type: ignore[misc]
    if isinstance(first, Sequence) and not isinstance(first, str | bytes):
        parts = [part(lambda sample, i=i: sample[i]) for i in range(len(first))]  # type: ignore[misc]
        return parts if isinstance(first, list | tuple | range) else type(first)(parts)  # type: ignore[call-arg]
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        fields = [field.name for field in dataclasses.fields(first) if field.init]
        return dataclasses.replace(first, **{f: part(lambda sample, f=f: getattr(sample, f)) for f in fields})  # type: ignore[misc]
    raise TypeError(f"{name}: cannot put samples of type {type(first).__name__} into one batch; give the loader a collate_fn")


def _stacked(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors stacked by a copy in memory, so that no program depends on which samples were drawn."""
    first = tensors[0]
    tracked = is_grad_enabled() and any(t.requires_grad for t in tensors)
    if tracked or any(t.dtype is not first.dtype for t in tensors):
        return call(OPERATIONS["stack"], (list(tensors),))
    return from_data(_same_shapes([values_of(t) for t in tensors]))


def _same_shapes(arrays: Sequence[np.ndarray]) -> np.ndarray:
    if shapes := sorted({a.shape for a in arrays if a.shape != arrays[0].shape}):
        raise ArgumentError(
            f"default_collate: samples have shapes {arrays[0].shape} and {shapes[0]}; make them equal, or give the loader "
            "a collate_fn that does"
        )
    return np.stack(arrays)


def gathered(dataset: object, positions: Sequence[int]) -> list[Tensor] | None:
    """The default-collated batch of a TensorDataset's rows, gathered at once; None for other datasets."""
    if type(dataset) is Subset:
        return gathered(dataset.dataset, [dataset.indices[p] for p in positions])
    if default_collate_fn_map.get(Tensor) is not collate_tensor_fn:
        return None
    if type(dataset) is not TensorDataset or (is_grad_enabled() and any(t.requires_grad for t in dataset.tensors)):
        return None
    return [from_data(values_of(t)[list(positions)]) for t in dataset.tensors]
