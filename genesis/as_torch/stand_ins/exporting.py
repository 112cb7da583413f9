"""`torch.export` and `torch.onnx.export`: genesis' functions under PyTorch's signatures, with genesis' file format."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import genesis
from genesis.ir.annotations import Tree
from genesis.nn.module import Module
from genesis.shipping import Dim, ExportedProgram, ExportGraphSignature, load_program
from genesis.shipping import export as exported

__all__ = ["Dim", "ExportGraphSignature", "ExportedProgram", "dims", "export", "load", "save"]


def export(
    mod: Module, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *, dynamic_shapes: Any = None,
    strict: bool = False, **ignored: Any,
) -> ExportedProgram:
    """`genesis.export` of a module. Sizes that are numbers in `dynamic_shapes` are fixed."""
    if not isinstance(mod, Module):
        raise ValueError(f"torch.export.export: wants a module, got {type(mod).__name__}; genesis.export takes functions")
    return exported(mod, *args, dynamic=_dims_alone(dynamic_shapes), **(kwargs or {}))


def _dims_alone(shapes: Tree) -> Any:
    """The tree with None for sizes that are numbers."""
    if isinstance(shapes, Mapping):
        return {key: _dims_alone(item) for key, item in shapes.items()}
    if isinstance(shapes, list | tuple):
        return [_dims_alone(item) for item in shapes]
    return None if isinstance(shapes, int) else shapes


def save(ep: ExportedProgram, f: str | os.PathLike[str], **ignored: Any) -> None:
    """`ep.save(f)`."""
    ep.save(f)


def load(f: str | os.PathLike[str], **ignored: Any) -> ExportedProgram:
    """`genesis.load_program(f)`."""
    return load_program(f)


def export_onnx(
    model: Any, args: Any = (), f: str | os.PathLike[str] | None = None, *, dynamic_shapes: Any = None, **options: Any
) -> Any:
    """`genesis.onnx.export`; settings of PyTorch's exporter are ignored."""
    export_model = genesis.onnx.export  # the package onnx is imported when it is asked for
    return export_model(model, args, f, dynamic_shapes=_dims_alone(dynamic_shapes), **options)


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """A Dim for each name."""
    return tuple(Dim(name, min=min, max=max) for name in names)
