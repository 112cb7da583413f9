"""Hooks of modules: users observe or change a module's inputs, results and gradients."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar
from weakref import ref as weakref

from genesis.autograd.hooks import RemovableHandle
from genesis.ir.annotations import AnyFunction, Arguments, Options, Tree
from genesis.nn.backward_call import BackwardCall, as_tuple
from genesis.tracing.thread import thread_state

Hook = AnyFunction
P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class _HasForward(Protocol[P, R]):
    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


class _Hooks:
    """The hooks of one module; each kind in calling order."""

    def __init__(self) -> None:
        self.before: OrderedDict[int, Hook] = OrderedDict()
        self.after: OrderedDict[int, Hook] = OrderedDict()
        self.failed: dict[int, Hook] = {}  # hooks of `after` that also run after an exception
        self.backward_before: OrderedDict[int, Hook] = OrderedDict()
        self.backward_after: OrderedDict[int, Hook] = OrderedDict()

    def add_after(self, hook: Hook, with_kwargs: bool, prepend: bool, always_call: bool) -> RemovableHandle:
        after = _After(hook, with_kwargs)
        handle = _registered(self.after, hook, after, prepend)
        if always_call:
            self.failed[handle.id] = after
        return handle

    def joined(self, others: _Hooks) -> _Hooks:
        """These hooks, and behind them `others`."""
        made = _Hooks()
        for hooks in (self, others):
            for name, table in vars(hooks).items():
                getattr(made, name).update(table)
        return made

    def call(self, module: Hooked, inputs: Arguments, options: Options) -> Tree:
        """The module's result, with its hooks called before and after, those of all modules among them."""
        of_all = Hooked._hooks
        return (self if of_all is None or of_all is self else of_all.joined(self))._call(module, inputs, options)

    def _call(self, module: Hooked, inputs: Arguments, options: Options) -> Tree:
        called: set[int] = set()
        output = None
        try:
            for hook in [*self.before.values()]:
                inputs, options = hook(module, inputs, options)
            before, after = self.backward_before, self.backward_after
            backward_call = BackwardCall(module, before, after) if before or after else None
            if backward_call is not None:
                inputs = backward_call.in_(inputs)
            output = module.forward(*inputs, **options)
            for key, hook in [*self.after.items()]:
                called.add(key)
                output = hook(module, inputs, options, output)
            return output if backward_call is None else backward_call.out(output)
        except Exception:
            for hook in [hook for key, hook in self.failed.items() if key not in called]:
                try:
                    hook(module, inputs, options, output)
                except Exception as problem:
                    warnings.warn(f"forward hook with always_call=True raised, and so did what came before it: {problem!r}",
                                  stacklevel=3)
            raise


class _Before:
    """Adapts a hook before calls. A plain object, so that modules with hooks can be pickled."""

    def __init__(self, hook: Hook, with_options: bool) -> None:
        self.hook, self.with_options = hook, with_options

    def __call__(self, module: Hooked, inputs: Arguments, options: Options) -> tuple[Arguments, Options]:
        if self.with_options:
            answer = self.hook(module, inputs, options)
            if answer is not None and not (isinstance(answer, tuple) and len(answer) == 2):
                raise RuntimeError(f"forward pre-hook: wants None or (inputs, options) back, got {answer!r:.60}")
            return (inputs, options) if answer is None else answer
        answer = self.hook(module, inputs)
        return inputs if answer is None else as_tuple(answer), options


class _After:
    """Adapts a hook after calls."""

    def __init__(self, hook: Hook, with_options: bool) -> None:
        self.hook, self.with_options = hook, with_options

    def __call__(self, module: Hooked, inputs: Arguments, options: Options, output: Tree) -> Tree:
        given = (inputs, options, output) if self.with_options else (inputs, output)
        answer = self.hook(module, *given)
        return output if answer is None else answer


class _Registered(MutableMapping[int, Hook]):
    """The hooks of one kind by the ids of their handles, as given by the user: PyTorch's `_forward_hooks` and others."""

    def __init__(self, hooks: OrderedDict[int, Hook], wrap: AnyFunction) -> None:
        self._hooks, self._wrap = hooks, wrap

    def __getitem__(self, key: int) -> Hook:
        entry = self._hooks[key]
        return entry.hook if isinstance(entry, _Before | _After) else entry

    def __setitem__(self, key: int, hook: Hook) -> None:
        self._hooks[key] = self._wrap(hook)

    def __delitem__(self, key: int) -> None:
        del self._hooks[key]

    def __iter__(self) -> Iterator[int]: return iter([*self._hooks])
    def __len__(self) -> int: return len(self._hooks)
    def __repr__(self) -> str: return repr(OrderedDict(self.items()))


class Hooked:
    """A callable whose calls hooks observe and change: `forward` computes a call's result."""

    _hooks: _Hooks | None = None  # the class's are those of all modules

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """The result of a call of the module."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    if TYPE_CHECKING:

        @property
        def __call__(self: _HasForward[P, R]) -> Callable[P, R]: ...  # a call takes and gives what `forward` does
    else:

        def __call__(self, *inputs, **options):
            thread = thread_state.__dict__  # one look-up: each attribute of a thread-local costs as much
            around = thread["scope"]
            thread["scope"] = around, weakref(self), type(self)
            try:
                if self._hooks is None:
                    return self.forward(*inputs, **options)
                return self._hooks.call(self, inputs, options)
            finally:
                thread["scope"] = around

    def register_forward_pre_hook(self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHandle:
        """Call `hook(module, inputs)` before each call of the module; its result, unless None, replaces the inputs.

        With `with_kwargs` it is `hook(module, inputs, options)`, which returns both or None. `prepend`: before the others.

        >>> double = genesis.nn.Identity()
        >>> handle = double.register_forward_pre_hook(lambda module, inputs: inputs[0] * 2)
        >>> double(genesis.tensor([1., 2.]))
        tensor([2., 4.])
        >>> handle.remove()
        """

        return _registered(self._own_hooks().before, hook, _Before(hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, inputs, output)` after each call of the module; its result, unless None, replaces the output.

        With `with_kwargs` it is `hook(module, inputs, options, output)`; with `always_call` it is also called, with
        None, if the module raised an exception. `prepend`: before the others.

        >>> shapes = []
        >>> layer = genesis.nn.Linear(3, 2)
        >>> with layer.register_forward_hook(lambda module, inputs, output: shapes.append(output.shape)):
        ...     _ = layer(genesis.ones(4, 3))
        >>> shapes
        [(4, 2)]
        """

        return self._own_hooks().add_after(hook, with_kwargs, prepend, always_call)

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

        >>> layer = genesis.nn.Identity()
        >>> handle = layer.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 10,))
        >>> x = genesis.tensor([1., 2.], requires_grad=True)
        >>> layer(x).sum().backward()
        >>> x.grad
        tensor([10., 10.])
        """
        return _registered(self._own_hooks().backward_after, hook, hook, prepend)

    register_backward_hook = register_full_backward_hook  # its older name

    _forward_pre_hooks = property(
        lambda self: _Registered(self._own_hooks().before, functools.partial(_Before, with_options=False)))
    _forward_hooks = property(lambda self: _Registered(self._own_hooks().after, functools.partial(_After, with_options=False)))
    _backward_hooks = property(lambda self: _Registered(self._own_hooks().backward_after, lambda hook: hook))

    def _own_hooks(self) -> _Hooks:
        own: _Hooks | None = vars(self).get("_hooks")
        if own is None:
            own = self._hooks = _Hooks()
        return own


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """`register_forward_pre_hook` of all modules."""
    return _registered(_of_all().before, hook, _Before(hook, False), False)


def register_module_forward_hook(hook: Hook, *, with_kwargs: bool = False, always_call: bool = False) -> RemovableHandle:
    """`register_forward_hook` of all modules.

    >>> names = []
    >>> with register_module_forward_hook(lambda module, inputs, output: names.append(type(module).__name__)):
    ...     _ = genesis.nn.Sequential(genesis.nn.ReLU())(genesis.ones(1))
    >>> names
    ['ReLU', 'Sequential']
    """
    return _of_all().add_after(hook, with_kwargs, False, always_call)


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """`register_full_backward_pre_hook` of all modules."""
    return _registered(_of_all().backward_before, hook, hook, False)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """`register_full_backward_hook` of all modules."""
    return _registered(_of_all().backward_after, hook, hook, False)


def _of_all() -> _Hooks:
    if Hooked._hooks is None:
        Hooked._hooks = _Hooks()
    return Hooked._hooks


def _registered(hooks: OrderedDict[int, Hook], hook: Hook, called: Hook, prepend: bool) -> RemovableHandle:
    """A handle on `hook`, which is registered in `hooks` as `called`."""
    handle = RemovableHandle(hooks, hook, prepend)
    hooks[handle.id] = called
    return handle


NOT_REPLAYABLE = (
    "register_forward_pre_hook", "register_forward_hook", "register_full_backward_pre_hook", "register_full_backward_hook",
    "register_module_forward_pre_hook", "register_module_forward_hook", "register_module_full_backward_pre_hook",
    "register_module_full_backward_hook", "add_after", "<lambda>",  # which return the tables of hooks
)
