"""The intermediate representation: dtypes, shapes, and graphs of nodes. It knows nothing of tensors or kernels."""

from genesis.ir.dtypes import DTYPES, DType
from genesis.ir.graph import Graph, Node, Value
from genesis.ir.shapes import Shape

__all__ = ["DTYPES", "DType", "Graph", "Node", "Shape", "Value"]
