"""Hooks of modules: what the user wants to see, or to change, where a module is called and where gradients pass it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, Protocol, TypeVar

from genesis.autograd.custom import Context
from genesis.autograd.function import Function
from genesis.autograd.hooks import RemovableHandle
from genesis.ir.annotations import AnyFunction, Arguments, Options, Tree
from genesis.tensor.handle import Tensor

__all__ = ["Hooked"]

Hook = AnyFunction
P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class _HasForward(Protocol[P, R]):
    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


class _Hooks:
    """The hooks of one module, of each kind in the order in which they are called."""

    def __init__(self) -> None:
        self.before: OrderedDict[int, Hook] = OrderedDict()
        self.after: OrderedDict[int, Hook] = OrderedDict()
        self.failed: dict[int, Hook] = {}  # those of `after` that are called where the module raised, too
        self.backward_before: OrderedDict[int, Hook] = OrderedDict()
        self.backward_after: OrderedDict[int, Hook] = OrderedDict()

    def call(self, module: Hooked, inputs: Arguments, options: Options) -> Tree:
        """What a call of the module gives, its hooks called around it."""
        for hook in [*self.before.values()]:
            inputs, options = hook(module, inputs, options)
        passing = _Passing(module, self) if self.backward_before or self.backward_after else None
        called: set[int] = set()
        output = None
        try:
            if passing is not None:
                inputs = passing.in_(inputs)
            output = module.forward(*inputs, **options)
            for key, hook in [*self.after.items()]:
                called.add(key)
                output = hook(module, inputs, options, output)
            return output if passing is None else passing.out(output)
        except Exception:
            for hook in [hook for key, hook in self.failed.items() if key not in called]:
                hook(module, inputs, options, output)
            raise


class _Passing:
    """One call of a module with backward hooks: the gradients of its results, until those of its inputs are there as well."""

    def __init__(self, module: Hooked, hooks: _Hooks) -> None:
        self.module, self.hooks = module, hooks
        self.inputs = self.outputs = _Places(0, [])
        self.gradients: tuple[Tensor | None, ...] = ()

    def in_(self, inputs: Arguments) -> Arguments:
        """The inputs, noticed when gradients come to them."""
        self.inputs = _Places.of(inputs)
        return self.inputs.watched(_Inputs, self, inputs)

    def out(self, output: Tree) -> Tree:
        """What the module returned, noticed when gradients come to it: a tensor, or a tuple with tensors."""
        self.outputs = _Places.of(_tuple(output))
        result = self.outputs.watched(_Outputs, self, _tuple(output))
        return result if isinstance(output, tuple) else result[0]

    def of_outputs(self, gradients: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        """The gradients of the results, as the hooks that come first leave them."""
        self.gradients = self.outputs.among(gradients)
        for hook in [*self.hooks.backward_before.values()]:
            self.gradients = _replaced(hook(self.module, self.gradients), self.gradients)
        if not self.inputs.places:  # nothing comes after it
            for hook in [*self.hooks.backward_after.values()]:
                hook(self.module, self.inputs.among(()), self.gradients)
        return tuple(self.gradients[k] for k in self.outputs.places)

    def of_inputs(self, gradients: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        """The gradients of the inputs that have some, as the hooks leave them."""
        whole = self.inputs.among(gradients)
        for hook in [*self.hooks.backward_after.values()]:
            whole = _replaced(hook(self.module, whole, self.gradients), whole)
        return tuple(whole[k] for k in self.inputs.places)


class _Places(NamedTuple):
    """Which of so many values are tensors that gradients come to."""

    number: int
    places: list[int]

    @classmethod
    def of(cls, values: Arguments) -> _Places:
        return cls(len(values), [k for k, x in enumerate(values) if isinstance(x, Tensor) and x.requires_grad])

    def watched(self, function: type[Function], passing: _Passing, values: Arguments) -> Arguments:
        """The values, with those tensors as results of `function`."""
        if not self.places:
            return values
        seen = dict(zip(self.places, _tuple(function.apply(passing, *[values[k] for k in self.places])), strict=True))
        return tuple(seen.get(k, value) for k, value in enumerate(values))

    def among(self, gradients: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        """Gradients of those tensors, and None for the other values."""
        found = dict(zip(self.places, gradients, strict=False))
        return tuple(found.get(k) for k in range(self.number))


class _Inputs(Function):
    """Inputs of a module as they are."""

    @staticmethod
    def forward(context: Context, passing: _Passing, *inputs: Tensor) -> tuple[Tensor, ...]:
        context.set_materialize_grads(False)
        context.save_variable("passing", passing)
        return tuple(x.view_as(x) for x in inputs)

    @staticmethod
    def backward(context: Context, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        return None, *context.saved_variables["passing"].of_inputs(gradients)


class _Outputs(_Inputs):
    """Results of a module as they are."""

    @staticmethod
    def backward(context: Context, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        return None, *context.saved_variables["passing"].of_outputs(gradients)


class Hooked:
    """A callable whose calls can be watched, and changed: `forward` says what a call computes."""

    _hooks: _Hooks | None = None

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """What a call of the module computes."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    if TYPE_CHECKING:

        @property
        def __call__(self: _HasForward[P, R]) -> Callable[P, R]: ...  # a call takes and gives what `forward` does
    else:

        def __call__(self, *inputs, **options):
            if self._hooks is None:
                return self.forward(*inputs, **options)
            return self._hooks.call(self, inputs, options)

    def register_forward_pre_hook(self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHandle:
        """Call `hook(module, inputs)` before each call of the module; what it returns, unless None, replaces the inputs.

        With `with_kwargs` it is `hook(module, inputs, options)`, which returns both or None. `prepend`: before the others.

        >>> import genesis
        >>> double = genesis.nn.Identity()
        >>> handle = double.register_forward_pre_hook(lambda module, inputs: inputs[0] * 2)
        >>> double(genesis.tensor([1., 2.]))
        tensor([2., 4.])
        >>> handle.remove()
        """

        def before(module: Hooked, inputs: Arguments, options: Options) -> tuple[Arguments, Options]:
            if with_kwargs:
                answer = hook(module, inputs, options)
                return (inputs, options) if answer is None else answer
            answer = hook(module, inputs)
            return inputs if answer is None else _tuple(answer), options

        return _registered(self._own_hooks().before, hook, before, prepend)

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, inputs, output)` after each call of the module; what it returns, unless None, replaces the output.

        With `with_kwargs` it is `hook(module, inputs, options, output)`; with `always_call` it is called, with None, where
        the module raised an exception, too. `prepend`: before the others.

        >>> import genesis
        >>> shapes = []
        >>> layer = genesis.nn.Linear(3, 2)
        >>> with layer.register_forward_hook(lambda module, inputs, output: shapes.append(output.shape)):
        ...     _ = layer(genesis.ones(4, 3))
        >>> shapes
        [(4, 2)]
        """

        def after(module: Hooked, inputs: Arguments, options: Options, output: Tree) -> Tree:
            answer = hook(module, inputs, options, output) if with_kwargs else hook(module, inputs, output)
            return output if answer is None else answer

        hooks = self._own_hooks()
        handle = _registered(hooks.after, hook, after, prepend)
        if always_call:
            hooks.failed[handle.id] = after
        return handle

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, gradients)` when the gradients of the module's results are there; what it returns, unless None,
        replaces them. `prepend`: before the others.
        """
        return _registered(self._own_hooks().backward_before, hook, hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, input_gradients, output_gradients)` when the gradients of the module's inputs are there, or, if
        none of them has any, those of its results; what it returns, unless None, replaces those of the inputs.

        Both are tuples, with None where there is no gradient. Inputs are those given by position, results a tensor or a tuple.
        `prepend`: before the others.

        >>> import genesis
        >>> layer = genesis.nn.Identity()
        >>> handle = layer.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 10,))
        >>> x = genesis.tensor([1., 2.], requires_grad=True)
        >>> layer(x).sum().backward()
        >>> x.grad
        tensor([10., 10.])
        """
        return _registered(self._own_hooks().backward_after, hook, hook, prepend)

    def _own_hooks(self) -> _Hooks:
        if self._hooks is None:
            self._hooks = _Hooks()
        return self._hooks


def _registered(hooks: OrderedDict[int, Hook], hook: Hook, called: Hook, prepend: bool) -> RemovableHandle:
    """A handle on `hook`, that stands among `hooks` as `called`."""
    handle = RemovableHandle(hooks, hook)
    hooks[handle.id] = called
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _tuple(value: Tree) -> Arguments:
    return value if isinstance(value, tuple) else (value,)


def _replaced(answer: Tree, gradients: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
    """A hook's answer, if it can stand in for `gradients`; these if there is none."""
    if answer is None:
        return tuple(gradients)
    if len(_tuple(answer)) != len(gradients):
        raise RuntimeError(f"backward hook: wants {len(gradients)} gradients back, or None, got {len(_tuple(answer))}")
    return _tuple(answer)
