"""`torch.export` and `torch.onnx.export`: genesis' functions under PyTorch's signatures, with genesis' file format."""

from __future__ import annotations

import inspect
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import genesis
from genesis.as_torch.stand_ins import _pytree
from genesis.ir.annotations import Tree
from genesis.nn.module import Module
from genesis.pytree import leaves_of, map_tree
from genesis.shipping import Dim, ExportedProgram, ExportGraphSignature, export as exported, load_program
from genesis.tensor.handle import Tensor

__all__ = [
    "AdditionalInputs", "Dim", "ExportGraphSignature", "ExportedProgram", "ShapesCollection", "dims", "draft_export", "export",
    "load", "register_dataclass", "save",
]


def export(
    mod: Module, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *, dynamic_shapes: Any = None,
    strict: bool = False, preserve_module_call_signature: Sequence[str] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """`genesis.export` of a module. Sizes that are numbers in `dynamic_shapes` are fixed.

    The last three settings have no effect: programs are recorded in one way, their shapes are checked at each call, and there
    is no `unflatten`, which would read signatures.
    """
    if not isinstance(mod, Module):
        raise ValueError(f"torch.export.export: wants a module, got {type(mod).__name__}; genesis.export takes functions")
    if isinstance(dynamic_shapes, ShapesCollection | AdditionalInputs):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    return exported(mod, *args, dynamic=_without_fixed_sizes(dynamic_shapes), **(kwargs or {}))


def _without_fixed_sizes(shapes: Tree) -> Any:
    """The tree with None for sizes that are numbers."""
    if isinstance(shapes, Mapping):
        return {key: _without_fixed_sizes(item) for key, item in shapes.items()}
    if isinstance(shapes, list | tuple):
        return [_without_fixed_sizes(item) for item in shapes]
    return None if isinstance(shapes, int) else shapes


draft_export = export  # programs are verified, or refused: there are no drafts with reports


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Register a dataclass as a container in trees; `export` itself takes tuples, lists and dicts."""
    _pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)


class ShapesCollection:
    """Dynamic sizes by tensor, for `dynamic_shapes`: `shapes[x] = {0: Dim("batch")}`, or `shapes[x][0] = Dim("batch")`."""

    def __init__(self) -> None:
        self._shapes: dict[int, tuple[Tensor, Any]] = {}

    def __setitem__(self, t: Tensor, shape: Any) -> None:
        if not isinstance(t, Tensor):
            raise AssertionError(f"ShapesCollection: wants a tensor, got {type(t).__name__}")
        known = self._shapes.setdefault(id(t), (t, shape))[1]
        if known != shape:
            raise AssertionError(f"ShapesCollection: shapes of one tensor differ: {known} and {shape}")

    def __getitem__(self, t: Tensor) -> Any:
        return self._shapes.setdefault(id(t), (t, {}))[1]

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The sizes as a tree like the arguments'. Raises ValueError for a tensor that is not among them."""
        found = set()

        def shape_of(leaf: Tree) -> Tree:
            found.add(id(leaf))
            shape = self._shapes.get(id(leaf), (None, None))[1]
            return _Sizes(shape if isinstance(shape, Mapping) else enumerate(shape)) if shape else None

        shapes = {name: map_tree(shape_of, value) for name, value in _named(m, args, kwargs).items()}
        if not self._shapes.keys() <= found:
            raise ValueError("ShapesCollection: some tensors that have shapes are not among the arguments; were they copied?")
        return _plain(shapes)


class AdditionalInputs:
    """Further arguments, for `dynamic_shapes`: sizes that differ in them are dynamic. Sizes that are equal in all are one."""

    def __init__(self) -> None:
        self._examples: list[tuple[Sequence[Any], Mapping[str, Any] | None]] = []

    def add(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> None:
        """Add arguments."""
        if not isinstance(args, tuple) or not isinstance(kwargs, dict | None):
            raise AssertionError("AdditionalInputs: wants a tuple of arguments, and a dict or None")
        self._examples.append((args, kwargs))

    def dynamic_shapes(self, m: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The sizes as a tree like the arguments'. Raises ValueError for other values or numbers of axes that differ."""
        first, *others = [_named(m, *example) for example in ((args, kwargs), *self._examples)]
        rest = [iter(leaves_of(other)) for other in others]
        dims: dict[tuple[int, ...], Dim] = {}

        def shape_of(leaf: Tree) -> Tree:
            beside = [next(leaves) for leaves in rest]
            if not isinstance(leaf, Tensor):
                if any(type(other) is not type(leaf) or other != leaf for other in beside):
                    raise ValueError(f"AdditionalInputs: {leaf!r} is {beside}; want one value in all")
                return None
            if any(not isinstance(other, Tensor) or other.ndim != leaf.ndim for other in beside):
                raise ValueError("AdditionalInputs: want tensors with equally many axes in all")
            sizes = [*enumerate(zip(leaf.shape, *(other.shape for other in beside), strict=True))]
            changing = [(axis, all_of) for axis, all_of in sizes if len({*all_of}) > 1]
            return _Sizes({axis: dims.setdefault(all_of, Dim(f"size{len(dims)}")) for axis, all_of in changing})

        return _plain({name: map_tree(shape_of, value) for name, value in first.items()})

    def verify(self, ep: ExportedProgram) -> None:
        """Run a program with all of them. Raises ValueError for arguments that it does not take."""
        for args, kwargs in self._examples:
            ep(*args, **(kwargs or {}))


class _Sizes(dict[int, Any]):
    """The sizes of a tensor, among dicts of tensors."""


def _plain(tree: Tree) -> Any:
    """The tree with plain dicts; None for tensors without dynamic sizes."""
    if isinstance(tree, _Sizes):
        return dict(tree) or None
    if isinstance(tree, dict):
        return {key: _plain(item) for key, item in tree.items()}
    return [_plain(item) for item in tree] if isinstance(tree, list | tuple) else tree


def _named(m: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments by name."""
    function = m.forward if isinstance(m, Module) else m
    return dict(inspect.signature(function).bind(*args, **(kwargs or {})).arguments)


def save(
    ep: ExportedProgram, f: str | os.PathLike[str] | IO[bytes], *, extra_files: Mapping[str, Any] | None = None,
    opset_version: Mapping[str, int] | None = None, pickle_protocol: int = 2,
) -> None:
    """`ep.save(f)`, also into an open file; nothing is pickled. Raises ValueError for extra files, and opsets."""
    _refuse_others("save", extra_files=extra_files, opset_version=opset_version)
    if isinstance(f, str | os.PathLike):
        return ep.save(f)
    with _temporary_path() as path:
        ep.save(path)
        with path.open("rb") as saved:
            shutil.copyfileobj(saved, f)


def load(
    f: str | os.PathLike[str] | IO[bytes], *, extra_files: Mapping[str, Any] | None = None,
    expected_opset_version: Mapping[str, int] | None = None,
) -> ExportedProgram:
    """`genesis.load_program(f)`, also from an open file. Raises ValueError for extra files, and opsets."""
    _refuse_others("load", extra_files=extra_files, expected_opset_version=expected_opset_version)
    if isinstance(f, str | os.PathLike):
        return load_program(f)
    with _temporary_path() as path:
        with path.open("wb") as copy:
            shutil.copyfileobj(f, copy)
        return load_program(path)


@contextmanager
def _temporary_path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder, "program")


def _refuse_others(name: str, **given: Mapping[str, Any] | None) -> None:
    for setting, value in given.items():
        if value:
            raise ValueError(f"torch.export.{name}: {setting}={value!r:.60}; want none: genesis' files hold the program alone")


def export_onnx(
    model: Any, args: Any = (), f: str | os.PathLike[str] | None = None, *, dynamic_shapes: Any = None, **options: Any
) -> Any:
    """`genesis.onnx.export`."""
    export_model = genesis.onnx.export  # the package onnx is imported when it is asked for
    return export_model(model, args, f, dynamic_shapes=_without_fixed_sizes(dynamic_shapes), **options)


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """A Dim for each name."""
    return tuple(Dim(name, min=min, max=max) for name in names)
