"""Shapes and dtypes of a graph's values, noted by running it: PyTorch's `fx.passes.shape_prop`."""

from __future__ import annotations

from typing import Any, NamedTuple

from genesis.as_torch.fx.interpreter import Interpreter
from genesis.as_torch.fx.node import Node, map_aggregate
from genesis.ir.dtypes import DType
from genesis.nn.module import Module
from genesis.tensor.handle import Tensor
from genesis.tensor.size import Size


class TensorMetadata(NamedTuple):
    """A tensor's metadata."""

    shape: Size
    dtype: DType
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


class ShapeProp(Interpreter):
    """Runs a graph module and stores in each node's `meta` its value's `"type"` and, for tensors, `"tensor_meta"`.

    >>> from genesis.as_torch.fx import symbolic_trace
    >>> traced = symbolic_trace(lambda x: x.sum(0))
    >>> _ = ShapeProp(traced).propagate(genesis.ones(2, 3))
    >>> [tuple(node.meta["tensor_meta"].shape) for node in traced.graph.nodes]
    [(2, 3), (3,), (3,)]
    """

    def __init__(self, gm: Module, fake_mode: Any = None) -> None:
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        """The value of a node, whose metadata are stored."""
        result = super().run_node(n)
        tensors = list[Tensor]()

        def noted(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor):
                return leaf
            tensors.append(leaf)
            return _extract_tensor_metadata(leaf)

        found = map_aggregate(result, noted)
        if tensors:
            n.meta["tensor_meta"] = found
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """The output for these arguments."""
        return self.run(*args)


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """A tensor's metadata."""
    return TensorMetadata(
        Size(result.shape), result.dtype, result.requires_grad, tuple(result.stride()), None, False, {})
