"""`torch.fx`: traces modules into graphs of calls, transforms graphs, and makes modules of them.

Calls in a graph are those of genesis' functions and layers.
"""

from genesis.as_torch.fx.graph import Graph
from genesis.as_torch.fx.graph_module import GraphModule
from genesis.as_torch.fx.interpreter import Interpreter, Transformer
from genesis.as_torch.fx.node import Node, map_arg
from genesis.as_torch.fx.proxy import Attribute, Proxy, TraceError
from genesis.as_torch.fx.rewriting import Match, replace_pattern
from genesis.as_torch.fx.shape_prop import ShapeProp as ShapeProp
from genesis.as_torch.fx.tracer import Tracer, symbolic_trace, wrap

__all__ = [
    "Attribute", "Graph", "GraphModule", "Interpreter", "Match", "Node", "Proxy", "TraceError", "Tracer", "Transformer",
    "map_arg", "replace_pattern", "symbolic_trace", "wrap",
]
