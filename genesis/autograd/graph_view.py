"""`grad_fn`: a view of the trace with one node per user call."""

from __future__ import annotations

import functools
from typing import Any

from genesis.autograd.derivation import arguments_of, call_at, derived_at, node_name, operation_at
from genesis.autograd.function import Function
from genesis.autograd.hooks import Hook, NodeHooks, RemovableHandle
from genesis.autograd.names_of_pytorch import Call, name_of_pytorch
from genesis.ir.library import Library
from genesis.tensor.handle import Tensor
from genesis.tracing.trace import Trace


class GradientNode:
    """A call's step of backward, or the accumulation into a leaf.

    >>> x = genesis.tensor(1., requires_grad=True)
    >>> y = x * 2 + 3
    >>> y.grad_fn, y.grad_fn.next_functions
    (<AddBackward>, ((<MulBackward>, 0), (None, 0)))
    """

    __slots__ = ("_index", "_trace")

    def __init__(self, trace: Trace, index: int) -> None:
        self._trace, self._index = derived_at(trace, index)
        self.__class__ = _kind(self.name().rpartition("::")[2])

    @property
    def variable(self) -> Tensor | None:
        """The leaf whose gradient is accumulated here, if it is alive; None for a call."""
        return self._trace.variables.get(self._index)

    def _is_leaf(self) -> bool:
        return self._trace.nodes[self._index].op == "variable"

    def name(self) -> str:
        """`AddBackward` for a call of `add` (`AddBackward0` to PyTorch), as its class; `AccumulateGrad` for a leaf."""
        if self._is_leaf():
            return "torch::autograd::AccumulateGrad" if Library.name == "torch" else "AccumulateGrad"
        plain = node_name(self._trace, self._index)
        if Library.name != "torch" or self._trace.backward.custom_calls.get(self._index) is not None:
            return plain
        called = operation_at(self._trace, self._index)
        if called is None:
            return plain + "0"
        nodes = [None if p is None else self._trace.nodes[p] for p in arguments_of(self._trace, self._index)]
        return name_of_pytorch(called[0], Call([None if node is None else len(node.shape) for node in nodes], called[1]), plain)

    @property
    def next_functions(self) -> tuple[tuple[GradientNode | None, int], ...]:
        """For each argument, (the node its gradient goes to, the result's number there), or (None, 0)."""
        if self._is_leaf():
            return ()
        custom = self._trace.backward.custom_calls.get(self._index)
        positions = custom.inputs if custom is not None else arguments_of(self._trace, self._index)
        return tuple([self._at(p) for p in positions])

    def _at(self, position: int | None) -> tuple[GradientNode | None, int]:
        if position is None or not self._trace.nodes[position].differentiable:
            return None, 0
        trace, index = derived_at(self._trace, position)
        if trace.nodes[index].op == "input":  # of a trace before this one, to which a freed graph does not lead any more
            return None, 0
        node = GradientNode(self._trace, position)
        custom = node._trace.backward.custom_calls.get(node._index)
        return node, custom.outputs.index(node._index) if custom is not None else 0

    def __getattr__(self, name: str) -> Any:
        """Attributes of a custom Function's context: `saved_tensors`, `needs_input_grad`, and others set by `forward`."""
        custom = self._trace.backward.custom_calls.get(self._index)
        if custom is None or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(custom.context, name)

    # ---- hooks ----
    def register_hook(self, fn: Hook) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after this step of backward, with the outgoing and incoming gradients.

        Its result, unless None, replaces the outgoing gradients.
        """
        return RemovableHandle(self._hooks().post, fn)

    def register_prehook(self, fn: Hook) -> RemovableHandle:
        """Call `fn(grad_outputs)` before this step of backward; its result, unless None, replaces them."""
        return RemovableHandle(self._hooks().pre, fn)

    def _hooks(self) -> NodeHooks:
        leaf = self.variable
        if leaf is None:
            return self._trace.backward_state().node_hooks.setdefault(self._first(), NodeHooks())
        if leaf._node_hooks is None:
            leaf._node_hooks = NodeHooks()
        return leaf._node_hooks

    def _first(self) -> int:
        custom = self._trace.backward.custom_calls.get(self._index)
        return custom.first if custom is not None else call_at(self._trace, self._index)[0]

    def __eq__(self, other: object) -> bool: return isinstance(other, GradientNode) and self._identity() == other._identity()
    def __hash__(self) -> int: return hash(self._identity())

    def _identity(self) -> tuple[int, int]:
        return (id(self._trace), self._first()) if self.variable is None else (id(self.variable), -1)

    def __repr__(self) -> str:
        address = f" object at {id(self):#x}" if Library.name == "torch" else ""
        return f"<{type(self).__name__}{address}>"


@functools.cache
def _kind(name: str) -> type[GradientNode]:
    """The class for steps of that name, which scripts read."""
    return type(name, (GradientNode,), {"__slots__": ()})


Function.register(GradientNode)


NOT_REPLAYABLE = ("register_hook", "register_prehook")
