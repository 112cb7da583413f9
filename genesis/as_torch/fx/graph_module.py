"""A module whose `forward` is a graph."""

from __future__ import annotations

import copy
import linecache
from itertools import count
from operator import attrgetter
from typing import Any

from genesis.as_torch.fx.graph import Graph
from genesis.nn.module import Module
from genesis.tensor.handle import Tensor

_numbers = count()
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"  # in `meta`: attributes that copies keep, by name


class GraphModule(Module):
    """A module with a graph, and the layers and tensors of `root` (a module, or a dict by path) that the graph uses.

    Attributes:
        graph: after changes, `recompile()` updates `forward`.
        code: the source of `forward`.
    """

    code: str

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self._class_name = class_name
        if isinstance(root, Module):
            self.training = root.training
        for node in graph.nodes:
            if node.op in ("call_module", "get_attr"):
                _put(self, node.target, attrgetter(node.target)(root) if isinstance(root, Module) else root[node.target])
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph; assigning one updates `forward`."""
        graph: Graph = vars(self)["_graph"]
        return graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        vars(self)["_graph"] = graph
        graph.owning_module = self
        self.recompile()

    def recompile(self) -> Any:
        """Compile `forward` from the present graph; returns its source with its globals."""
        made = self.graph.python_code("self")
        path = f"<eval_with_key>.{next(_numbers)}"
        names = dict(made.globals)
        exec(compile(made.src, path, "exec"), names)
        linecache.cache[path] = (len(made.src), None, made.src.splitlines(True), path)
        vars(self)["code"] = made.src
        vars(self)["_forward"] = names["forward"]
        return made

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph."""
        return vars(self)["_forward"](self, *args, **kwargs)

    def add_submodule(self, target: str, m: Module) -> bool:
        """Set a layer at a path; returns whether that was possible."""
        _put(self, target, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the layer at a path; returns whether there was one."""
        path, _, name = target.rpartition(".")
        owner = attrgetter(path)(self) if path else self
        if not isinstance(vars(owner).get(name), Module):
            return False
        delattr(owner, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the layers that the graph does not call."""
        called = {node.target for node in self.graph.nodes if node.op in ("call_module", "get_attr")}
        for path, _ in [*self.named_modules()]:
            if path and not any(use == path or use.startswith(path + ".") or path.startswith(use + ".") for use in called):
                self.delete_submodule(path)

    def print_readable(self, print_output: bool = True, **ignored: Any) -> str:
        """Print and return the source of the module."""
        text = f"class {self._get_name()}(torch.nn.Module):\n    " + self.code.strip().replace("\n", "\n    ") + "\n"
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.code}\n# To see more debug info, please use `graph_module.print_readable()`"

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        graph = Graph()
        values: dict[Any, Any] = {}
        graph.output(graph.graph_copy(self.graph, values))
        made = memo[id(self)] = _made(copy.deepcopy(self._parts(), memo), graph, self._get_name(), self.training)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self._parts(), self.graph, self._get_name(), self.training)

    def _parts(self) -> dict[str, Any]:
        """The layers and tensors that the graph uses, by their paths."""
        paths = [node.target for node in self.graph.nodes if node.op in ("call_module", "get_attr")]
        return {path: attrgetter(path)(self) for path in paths}

    def _get_name(self) -> str:
        return vars(self).get("_class_name", type(self).__name__)  # subclasses may have an `__init__` of their own


def _made(parts: dict[str, Any], graph: Graph, name: str, training: bool) -> GraphModule:
    made = GraphModule(parts, graph, name)
    made.training = training
    return made


class _CodeOnlyModule(Module):
    """A module with these attributes, from which a copied GraphModule takes its layers."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Give a module the layer or tensor that another one has at a path."""
    _put(to_module, target, attrgetter(target)(from_module))


def _put(root: Module, path: str, value: Any) -> None:
    """Set a layer or a tensor at a path; missing modules on the way are created."""
    *parents, name = path.split(".")
    for part in parents:
        if not hasattr(root, part):
            setattr(root, part, Module())
        root = getattr(root, part)
    if type(value) is Tensor and not isinstance(value, Module):
        root.register_buffer(name, value)
    else:
        setattr(root, name, value)
