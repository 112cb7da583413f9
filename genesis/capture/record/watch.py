"""The watch: a profiler hook that sees which code runs in a recorded call, and what a replay would not repeat."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType, FunctionType

from genesis.amp.grad_scaler import GradScaler
from genesis.autograd.grad_manager import GradManager
from genesis.capture.guards.purity import is_impure
from genesis.capture.guards.python_state import Guards
from genesis.ir.annotations import Options
from genesis.optim.lr_scheduler import LRScheduler
from genesis.tensor.traced_number import plain

_PACKAGE = str(Path(__file__).resolve().parents[2]) + os.sep
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = os.sep + "site-packages" + os.sep
# Library code that depends on state without guards, or changes state that replays do not change.
_UNSEEN = (
    "debug", "utils/data", "serialization", "amp/grad_scaler.py", "functions/printing.py", "optim/lr_scheduler",
    "func/functional", "autograd/grad_manager.py", "cuda/memory.py", "cuda/random.py", "cuda/streams.py",
)
_UNREPEATED = {
    "manual_seed", "seed", "initial_seed", "state_dict", "load_state_dict", "add_param_group", "register_hook",
    "register_post_accumulate_grad_hook", "register_prehook", "retain_grad", "set_default_dtype", "set_num_threads",
    "register_function", "unregister_function", "register_buffer", "register_parameter", "get_state", "set_state",
    "storage_offset", "data_ptr", "eager", "detect_anomaly", "set_default_device", "set_device",
}
_UNREPEATED_MODULES = {
    "random", "secrets", "uuid", "datetime", "tempfile", "socket", "subprocess", "logging", "queue", "threading",
}
_MANAGING = {"__enter__", "__exit__", "backward"}
_SCALING = {"scale", "unscale_", "step", "update", "get_scale", "is_enabled"}
_IN_PLACE = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}  # functions that last for one expression
_origins: dict[str, str] = {}


def _origin_of(frame: FrameType) -> str:
    """Whose code it runs: "user", "layer" (a module of genesis.nn), "genesis", "unseen", "standard"."""
    name = frame.f_code.co_filename
    if name == "<string>":  # made at run time, as methods of dataclasses and named tuples are
        module = str(frame.f_globals.get("__name__"))
        return "genesis" if module.startswith("genesis.") else "standard" if module.startswith("namedtuple_") else "user"
    origin = _origins.get(name)
    if origin is None:
        inside = name.startswith(_PACKAGE)
        standard = name.startswith((_STANDARD, "<frozen")) and _INSTALLED not in name
        origin = "standard" if standard else "user"
        if inside:
            origin = "layer" if name.startswith(_PACKAGE + "nn" + os.sep) else "genesis"
            relative = name[len(_PACKAGE) :].replace(os.sep, "/")
            if relative.startswith(_UNSEEN):
                origin = "unseen"
        elif f"{_INSTALLED}numpy{os.sep}" in name:
            origin = "standard"
        _origins[name] = origin
    return origin


class Watch:
    """A context in which this thread's calls are watched."""

    def __init__(self, guards: Guards, refuse: Callable[[str], None], schedule: Callable[[LRScheduler, Options], None]) -> None:
        self._guards = guards
        self._refuse = refuse
        self._schedule = schedule
        self._known: set[CodeType] = set()
        self._owners: set[int] = set()
        self._fresh: dict[int, object] = {}  # objects that the call itself makes
        self._away: FrameType | None = None  # a scheduler's step: it will be taken anew, so nothing in it counts
        self._before = sys.getprofile()

    def __enter__(self) -> None:
        sys.setprofile(self._see)

    def __exit__(self, *problem: object) -> None:
        sys.setprofile(self._before)

    def _see(self, frame: FrameType, event: str, argument: object) -> None:
        if self._away is None:  # nearly all events are of no interest, and the hook runs at each
            code = frame.f_code
            if event != "call":
                if event != "c_call" or _origins.get(code.co_filename) == "genesis":
                    return
            elif code.co_name not in _UNREPEATED and _origins.get(code.co_filename) == "genesis":
                return
        try:
            self._seen(frame, event, argument)
        except Exception as problem:  # an object of the user's that does not like to be looked at
            self._refuse(f"what it reads cannot be compared: {problem!r}")

    def _seen(self, frame: FrameType, event: str, argument: object) -> None:
        if self._away is not None:
            if event == "return" and frame is self._away:
                self._away = None
            return
        code, origin = frame.f_code, _origin_of(frame)
        if event == "c_call":
            if origin == "user" and is_impure(argument):
                self._refuse(f"it calls {getattr(argument, '__qualname__', argument)}")
        elif event != "call" or (origin == "standard" and code in self._known):
            return
        elif origin == "user" or origin == "layer":
            self._python(frame, code, origin)
        elif origin == "unseen":
            self._unseen(frame, code)
        elif origin == "genesis":
            if code.co_name in _UNREPEATED and self._is_called_by_user(frame):
                self._refuse(f"it calls {code.co_name}")
        else:
            module = frame.f_globals.get("__name__", "")
            if module.split(".")[0] not in _UNREPEATED_MODULES and not module.startswith("numpy.random"):
                self._known.add(code)
            elif self._is_called_by_user(frame):
                self._refuse(f"it calls {code.co_name} of {module}")

    def _python(self, frame: FrameType, code: CodeType, origin: str) -> None:
        if code not in self._known:
            self._known.add(code)
            if code.co_name in _UNREPEATED and origin == "layer":
                self._refuse(f"it calls {code.co_name}")
            if origin == "user":
                self._guards.globals_of(code, frame.f_globals)
                if code.co_freevars and code.co_name not in _IN_PLACE and not self._guards.knows(code):
                    # A frame does not know its function, whose cells are to be guarded: the collector finds it.
                    for function in gc.get_referrers(code):
                        if isinstance(function, FunctionType):
                            self._guards.enter(function, function.__name__)
            self._guards.code(code, origin == "user")
        # Code that asks for types would tell a Number from a number: it gets the number, which is a constant from then on.
        if "type" in code.co_names or "__class__" in code.co_names:
            for name, value in frame.f_locals.items():
                frame.f_locals[name] = plain(value)
        if code.co_argcount and code.co_varnames[0] in ("self", "cls"):
            owner = frame.f_locals.get(code.co_varnames[0])
            if id(owner) in self._owners:
                return
            self._owners.add(id(owner))
            if code.co_name in ("__init__", "__new__", "__post_init__"):
                self._fresh[id(owner)] = owner
            elif id(owner) not in self._fresh:
                self._guards.enter(owner, type(owner).__name__)

    def _unseen(self, frame: FrameType, code: CodeType) -> None:
        owner, given = frame.f_locals.get("self"), frame.f_locals
        name = self._guards.constant(owner)
        if isinstance(owner, LRScheduler) and code.co_name == "step":
            self._away = frame
            self._schedule(owner, {name: given[name] for name in code.co_varnames[1 : code.co_argcount]})
        elif isinstance(owner, GradManager) and code.co_name in _MANAGING and not (
            given.get("retain_graph") or given.get("create_graph")  # there would be something for `release` to find
        ):
            self._guards.visit(f"{name}.keep_empty_grad", owner.keep_empty_grad, "keep_empty_grad of GradManager")
            self._guards.visit(f"{name}._attached", owner._attached, "what is attached to GradManager")
        elif isinstance(owner, GradScaler) and not owner._enabled and code.co_name in _SCALING:
            self._guards.visit(f"{name}._enabled", False, "whether GradScaler is enabled")
        elif isinstance(owner, GradScaler) and code.co_name in _SCALING:
            self._refuse("a GradScaler looks at gradients, for an overflow, and steps or does not")
        elif self._is_called_by_user(frame):
            self._refuse(f"it calls {code.co_name} of {frame.f_globals.get('__name__')}")

    def _is_called_by_user(self, frame: FrameType) -> bool:
        """Whether the user's code called it, directly or through the standard library."""
        caller = frame.f_back
        while caller is not None and _origin_of(caller) == "standard":
            caller = caller.f_back
        return caller is not None and _origin_of(caller) == "user"
