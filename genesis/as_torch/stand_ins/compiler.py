"""`torch.compile`, `torch.compiler`, `torch._dynamo` and `torch.jit`: functions run unchanged, or are recorded by genesis.

Most decorators and wrappers return their argument. `torch.compile` is `genesis.compile`, which ignores backends and modes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import genesis
from genesis.as_torch.stand_ins.eval_frame import OptimizedModule
from genesis.as_torch.stand_ins.settings import Settings, always, itself, no, no_effect, nothing
from genesis.ir.annotations import AnyFunction
from genesis.nn.module import Module

F = TypeVar("F", bound=AnyFunction)


def compile(
    model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: object = "inductor",
    mode: str | None = None, options: object = None, disable: bool = False, name: str | None = None,
    recompile_limit: int | None = None, isolate_recompiles: bool | None = None, shapes_spec: object = None,
) -> Any:
    """`genesis.compile`. Where PyTorch splits a graph, the call runs uncompiled; with `fullgraph` it raises."""
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, dynamic=dynamic, disable=disable)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if disable:
        return model
    if isinstance(model, Module):
        return OptimizedModule(model, {"dynamic": dynamic, "fullgraph": fullgraph})
    made = genesis.compile(model, dynamic=dynamic, fullgraph=fullgraph)
    made._torchdynamo_orig_callable = model
    return made


def compile_module(module: Module, *, fullgraph: bool = False, dynamic: bool | None = None, **more: Any) -> None:
    """`module.compile()`: later calls of the module are compiled."""
    module.__class__ = type(genesis.compile(module, dynamic=dynamic, fullgraph=fullgraph))


def compile_modules() -> None:
    """Add the method `compile` to modules."""
    Module.compile = compile_module  # type: ignore[attr-defined]


def returned(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Returns the decorated function unchanged; called with other arguments, returns such a decorator."""
    return function if callable(function) else lambda decorated: decorated


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """`fn` itself: genesis records whole calls."""
    return returned(fn)


allow_in_graph = assume_constant_result = forbid_in_graph = nested_compile_region = returned
disallow_in_graph = run = wrap_numpy = returned


def substitute_in_graph(original_fn: AnyFunction, **options: Any) -> Callable[[F], F]:
    """A decorator that returns its function: no function is substituted while a call is recorded."""
    return lambda fn: fn


is_compiling = is_dynamo_compiling = is_exporting = no
reset = cudagraph_mark_step_begin = graph_break = mark_dynamic = mark_static = maybe_mark_dynamic = nothing
mark_static_address = mark_unbacked = reset_code_caches = load_cache_artifacts = nothing
set_stance = skip_guard_eval_unsafe = no_effect
config = Settings(cache_size_limit=8, recompile_limit=8)


get_default_backend, set_default_backend = always("genesis"), nothing  # a single one, used for all names
set_enable_guard_collectives = no
save_cache_artifacts = nothing  # kernels already persist on disk


def list_backends(*exclude_tags: Any) -> list[str]:
    """The single backend, used for all names."""
    return ["genesis"]


# ---- guards: all are always kept; a compiled call is never replayed if one fails ----
def keep_tensor_guards_unsafe(guard_entries: Any, keep_parameters: bool = False) -> list[bool]:
    """True for all of them."""
    return [True for _ in guard_entries]


keep_portable_guards_unsafe = skip_all_guards_unsafe = skip_guard_on_globals_unsafe = keep_tensor_guards_unsafe
skip_guard_on_all_nn_modules_unsafe = skip_guard_on_inbuilt_nn_modules_unsafe = keep_tensor_guards_unsafe


@dataclass
class CacheInfo:
    """A cache's contents by kind of entry; kernels persist on disk anyway."""

    artifacts: dict[str, list[str]] = field(default_factory=dict)


optimize = always(compile)


# ---- torch.jit ----
script = script_if_tracing = optimize_for_inference = freeze = script_method = trace = trace_module = itself
ignore = unused = export = interface = returned
is_scripting = is_tracing = no


class ScriptModule(Module):
    """PyTorch's class of scripted modules; here `script` returns the module itself, of its own class."""


RecursiveScriptModule = ScriptModule
optimized_execution = fuser = no_effect
Final = Final
Error = RuntimeError


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Saves the module itself by `genesis.save`, for `load`. Raises ValueError for further files."""
    _no_files("save", _extra_files)
    genesis.save(m, f)


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Loads a module saved by `save`. The file may run any code: only load trusted files."""
    _no_files("load", _extra_files)
    return genesis.load(f, map_location, weights_only=False)


def _no_files(name: str, files: Any) -> None:
    if files:
        raise ValueError(f"torch.jit.{name}: _extra_files has {', '.join(files)}; want none: a file has the module alone")


def annotate(the_type: object, the_value: Any) -> Any:
    """The value."""
    return the_value


def isinstance(obj: object, target_type: Any) -> bool:
    """Python's."""
    return __builtins__["isinstance"](obj, target_type)  # type: ignore[index, no-any-return]


class Attribute:
    """A value with its TorchScript type."""

    def __init__(self, value: object, type: object) -> None:
        self.value, self.type = value, type


def fork(func: AnyFunction, *args: Any, **kwargs: Any) -> Any:
    """`func` called at once; `wait` gives its result."""
    return func(*args, **kwargs)


wait = itself  # of a result of `fork`


class TracerWarning(Warning):
    """A warning of PyTorch's tracer; never raised."""

    ignore_lib_warnings = staticmethod(nothing)


NOT_REPLAYABLE = ("compile", "compile_module")
