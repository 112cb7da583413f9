"""The watch: a profiler hook that sees which code runs in a recorded call.

Guards cover the names in code of the user, of layers and of the standard library. Anything else that the user's code calls must
be known to be a function of its arguments: C functions and Python modules by `guards/known_functions.py`, functions of genesis
by a table (`replayable.py`).
"""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import logging
import sys
from types import CodeType, FrameType, FunctionType, ModuleType

from genesis.amp.grad_scaler import GradScaler
from genesis.autograd.grad_manager import GradManager
from genesis.capture.guards.known_functions import is_known_function, is_known_module
from genesis.capture.guards.opcodes import ASKING, binds, names_in
from genesis.capture.guards.python_state import UNKNOWN
from genesis.capture.record.computed_names import UNCERTAIN, passed
from genesis.capture.record.origins import LIBRARY, origin_of, origins
from genesis.capture.record.recorder import Recorder
from genesis.capture.record.replayable import is_replayable
from genesis.optim.lr_scheduler import LRScheduler
from genesis.runtime.profile_hook import profile_hook
from genesis.runtime.uninterrupted import is_of_handler
from genesis.tensor.handle import Tensor
from genesis.tensor.traced_number import Number, number_fixed, plain

_ENABLED = logging.Logger.isEnabledFor.__code__
_LEVELS = {  # of what loggers write; 0 for an argument
    _ENABLED: 0, logging.Logger.log.__code__: 0, logging.Logger.debug.__code__: logging.DEBUG,
    logging.Logger.info.__code__: logging.INFO, logging.Logger.warning.__code__: logging.WARNING}
_MANAGING = {"__enter__", "__exit__", "backward"}
_SCALING = {"scale", "unscale_", "step", "update", "get_scale", "is_enabled"}
_WRAPPING = functools.update_wrapper.__code__
_SIGNATURE = inspect.signature.__code__
_IN_PLACE = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}  # functions within one expression
_MAKING = {"__init__", "__post_init__"}
_RETURN_NEW = {"__new__", "__newobj__", "_make"}  # those of named tuples have the argument `_cls`


class Watch:
    """A context in which this thread's calls are watched."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._guards = recorder.guards
        self._refuse = recorder.refuse
        self._called = recorder.guards.seen.called  # names of the library's functions that the user's code may call
        self._known: set[CodeType] = set()
        self._unknown: set[CodeType] = set()  # what is no function of its arguments
        self._owners: set[int] = set()
        # Objects made by the call, and arguments that are compared part by part.
        self._fresh: dict[int, object] = {id(one): one for _, one in recorder.arguments.containers.values()}
        self._made: set[CodeType] = set()  # code of functions made by the call
        self._away: FrameType | None = None  # of a scheduler's step, which a replay repeats, or a logger: not guarded
        # The user's profiler sees the start of `__enter__` and the end of `__exit__`, and nothing in between.
        self._begin, self._end = functools.partial(sys.setprofile, self._see), profile_hook()

    def __enter__(self) -> None:
        self._begin()

    def __exit__(self, *problem: object) -> None:
        self._end()

    def _see(self, frame: FrameType, event: str, argument: object) -> None:
        if self._away is None:  # fast path: the hook runs at every event, nearly all of no interest
            code = frame.f_code
            if event != "call":
                if event == "return" and (code.co_name in _RETURN_NEW or code.co_varnames[:1] == ("_cls",)):
                    self._make(argument)
                if event != "c_call" or origins.get(code.co_filename) in LIBRARY:
                    return
            elif code.co_name not in self._called and origins.get(code.co_filename) == "genesis":
                return
        try:
            self._seen(frame, event, argument)
        except Exception as problem:  # an object of the user's that raises when it is inspected
            if is_of_handler(problem):
                raise
            self._refuse(f"what it reads cannot be compared: {problem!r}")

    def _seen(self, frame: FrameType, event: str, argument: object) -> None:
        if self._away is not None:
            if event == "return" and frame is self._away:
                self._away = None
            return
        code, origin = frame.f_code, origin_of(frame)
        if event == "c_call":
            if origin == "user" and not is_known_function(argument):
                self._refuse(f"it calls {getattr(argument, '__qualname__', argument)}, {UNKNOWN}")
            if any(argument is function for function in ASKING.values()):
                self._asks(frame, origin)
            return
        if event != "call":
            return
        if origin == "standard":
            self._standard(frame, code)
        else:
            if origin != "user" and not is_replayable(code, frame.f_globals):
                self._unlisted(frame, code)
            if origin != "genesis" and self._away is None:
                self._python(frame, code, origin)
        if origin != "genesis" and code not in _COPYING and (
            code in self._unknown or not _TELLING.isdisjoint(code.co_names)
        ):
            self._read_numbers(frame)  # last: before Python 3.13 each look at a frame's variables reads them anew

    def _asks(self, frame: FrameType, origin: str) -> None:
        """The user's code, or Python's for it, calls `getattr` or the like: guard what it asks for."""
        arguments = names_in(frame.f_code).asks.get(frame.f_lasti)
        if arguments == [] or (origin == "standard" and not self._is_called_by_user(frame)):
            return  # the name is a constant
        owner, name, *_ = [*passed(arguments or (), frame), UNCERTAIN, UNCERTAIN]
        self._guards.asked(type(owner) if id(owner) in self._fresh else owner, name)
        if isinstance(name, str) and (owner is UNCERTAIN or isinstance(owner, Tensor)):
            self._private({name}, origin)

    def _standard(self, frame: FrameType, code: CodeType) -> None:
        """Code of the standard library or NumPy: it reads the user's objects on the user's behalf."""
        self._leaves(frame, code)
        if code in _LEVELS and self._is_called_by_user(frame) and self._is_silent(frame, code):
            return
        if code is _WRAPPING and frame.f_locals["assigned"] is functools.WRAPPER_ASSIGNMENTS and (
            frame.f_locals["updated"] is functools.WRAPPER_UPDATES  # attributes that it copies are guarded where they are used
        ):
            return
        if not self._is_called_by_user(frame):
            return
        if code is _SIGNATURE and self._guards.signature(frame.f_locals["obj"]):
            self._away = frame
            return
        self._whole(frame, code)
        if code in self._known:
            return
        self._known.add(code)
        module = frame.f_globals.get("__name__", "")
        if not is_known_module(module, code.co_qualname):
            self._refuse(f"it calls {code.co_name} of {module}, {UNKNOWN}")
            self._unknown.add(code)
        if module.partition(".")[0] != "numpy":
            self._guards.code(code, True, False)
        if module == "abc":  # virtual subclasses may be registered later
            self._guards.abstract_classes()

    def _is_silent(self, frame: FrameType, code: CodeType) -> bool:
        """Whether a logger is only asked whether it writes, or does not write; that it will say so again, is guarded."""
        logger, level = frame.f_locals["self"], _LEVELS[code] or frame.f_locals["level"]
        if type(logger) not in (logging.Logger, logging.RootLogger) or type(level) is not int:
            return False
        writes, name = logger.isEnabledFor(level), self._guards.constant(logger)
        if writes and code is not _ENABLED:
            return False
        self._guards.fail_if(f"{name}.isEnabledFor({level}) is not {writes}", f"whether {logger.name} writes")
        self._away = frame
        return True

    def _leaves(self, frame: FrameType, code: CodeType) -> None:
        """A context exits: after an exception, it may let the call go on."""
        if code.co_name == "__exit__" and any(value is not None for name, value in frame.f_locals.items() if name != "self"):
            self._guards.seen.catches = True

    def _python(self, frame: FrameType, code: CodeType, origin: str) -> None:
        self._leaves(frame, code)
        first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        if code not in self._known:
            self._known.add(code)
            if origin == "user":
                self._users(frame, code)
            else:
                self._guards.library_globals(code, frame.f_globals)
            names = names_in(code)
            of_any = bool(names.owners) and (isinstance(first, ModuleType) or "super" in frame.f_globals)
            self._guards.code(code, origin == "user", of_any)
            self._private(names.foreign if not isinstance(first, Tensor) else names.attributes, origin)
        if code.co_argcount and code.co_varnames[0] in ("self", "cls") and id(first) not in self._owners:
            self._owners.add(id(first))
            if code.co_name in _MAKING:
                self._make(first)
            elif id(first) not in self._fresh:
                self._guards.meet(first)
        if origin == "user":
            self._whole(frame, code)

    def _read_numbers(self, frame: FrameType) -> None:
        """Have the variables of a frame, and what is given, contain plain numbers, which are constant from now on."""
        if self._recorder.numbers:
            given = frame.f_locals
            self._recorder.arguments.restore(number_fixed)
            given.update({name: plain(value) for name, value in given.items()})

    def _make(self, value: object) -> None:
        """The call has made `value`, unless it is from before the call: names have led to it then."""
        if not self._guards.has_entered(value):
            self._fresh[id(value)] = value

    def _whole(self, frame: FrameType, code: CodeType) -> None:
        """Guard all attributes of the variables of which code may look up any."""
        for name in names_in(code).owners:
            if name in code.co_freevars and not self._is_kept(frame, name):
                self._guards.look_up_any()
            else:
                self._guards.whole(frame.f_locals.get(name))

    def _is_kept(self, frame: FrameType, name: str) -> bool:
        """Whether a variable of a comprehension is an argument of the function around it that is never bound anew."""
        caller = frame.f_back
        outer = caller and caller.f_code
        return outer is not None and frame.f_code.co_name in _IN_PLACE and frame.f_code in outer.co_consts and (
            name in outer.co_varnames[: outer.co_argcount]) and not binds(outer, name)

    def _users(self, frame: FrameType, code: CodeType) -> None:
        """User code runs for the first time: guard its globals and the variables of its closure."""
        self._made.update(constant for constant in code.co_consts if isinstance(constant, CodeType))
        self._guards.globals_of(code, frame.f_globals)
        is_known = code in self._guards.functions or code.co_name in _IN_PLACE
        if not is_known and (code.co_freevars or code not in self._made):
            # A frame does not know its function, whose cells and defaults are guarded: the garbage collector finds it.
            functions = [found for found in gc.get_referrers(code) if isinstance(found, FunctionType)]
            for function in functions:
                self._guards.enter(function, function.__name__)
            if not functions and (code.co_freevars or code.co_argcount or code.co_kwonlyargcount):
                self._refuse(f"the closure and the defaults of {code.co_name} are not found, as after gc.freeze()")

    def _private(self, names: set[str], origin: str) -> None:
        """Note private attributes of tensors, which guards do not compare."""
        if origin == "user" and not _PRIVATE.isdisjoint(names):
            self._refuse(f"it reads {', '.join(sorted(_PRIVATE & names))}, which is a tensor's own affair")

    def _unlisted(self, frame: FrameType, code: CodeType) -> None:
        given = frame.f_locals
        owner = given.get("self")
        if type(owner) is Number:  # its class would be that of the number
            return
        if isinstance(owner, LRScheduler) and code.co_name == "step":
            self._away = frame
            self._recorder.scheduled(owner, {name: given[name] for name in code.co_varnames[1 : code.co_argcount]})
        elif isinstance(owner, GradManager) and code.co_name in _MANAGING and not (
            given.get("retain_graph") or given.get("create_graph")  # then `release` would matter
        ):
            name = self._guards.constant(owner)
            self._guards.visit(f"{name}.keep_empty_grad", owner.keep_empty_grad, "keep_empty_grad of GradManager")
            self._guards.visit(f"{name}._attached", owner._attached, "what is attached to GradManager")
        elif isinstance(owner, GradScaler) and not owner._enabled and code.co_name in _SCALING:
            self._guards.visit(f"{self._guards.constant(owner)}._enabled", False, "whether GradScaler is enabled")
        elif isinstance(owner, GradScaler) and code.co_name in _SCALING:
            self._refuse("a GradScaler looks at gradients, for an overflow, and steps or does not")
        elif self._is_called_by_user(frame):
            self._refuse(f"it calls {code.co_name} of {frame.f_globals.get('__name__')}, which is not known to be replayable")

    def _is_called_by_user(self, frame: FrameType) -> bool:
        """Whether user code called a frame, directly or through the standard library."""
        caller = frame.f_back
        while caller is not None and origin_of(caller) == "standard":
            caller = caller.f_back
        return caller is not None and origin_of(caller) == "user"


_COPYING = {copy.copy.__code__, copy.deepcopy.__code__}  # a copy of a number is the number
_TELLING = {"type", "__class__"}  # code that checks types would tell a Number from a number
_PRIVATE = {
    name for name in (*vars(Tensor), *Tensor.__annotations__)
    if name.startswith("_") and not (name.startswith("__") and name.endswith("__"))
}
