"""What a replay may rest on: instructions, functions of C, kinds of objects, and the library's functions that are listed."""

import dis
import importlib.util
import inspect
import itertools
import logging
import os
import sys
import threading
import time
import warnings
from types import CodeType, FunctionType

import pytest

import genesis
from genesis import nn, optim
from genesis.as_torch.stand_ins import torch_state
from genesis.capture.guards.opcodes import UNDERSTOOD, names_in
from genesis.capture.record.replayable import FUNCTIONS, MODULES, PACKAGES, is_replayable
from genesis.debug import explain
from genesis.nn import functional as F

HERE = os.path.basename(__file__)
X = genesis.ones(3)

# Public functions whose calls are not replayed: they have effects, or depend on what no guard compares.
UNLISTED = {
    "genesis": {
        "doctor", "export", "get_float32_matmul_precision", "get_printoptions", "load", "load_program", "manual_seed", "save",
        "set_deterministic_debug_mode", "use_deterministic_algorithms",
        "set_default_device", "set_default_dtype", "set_float32_matmul_precision", "set_num_threads", "set_printoptions",
        "seed", "initial_seed", "get_rng_state", "set_rng_state", "set_logs", "synchronize",
    },
    "genesis.Tensor": {
        "__array__", "__array_interface__", "__cuda_array_interface__", "__dlpack__", "__repr__", "_repr_html_", "data_ptr",
        "is_set_to", "is_shared", "register_hook", "register_post_accumulate_grad_hook", "retain_grad", "retains_grad",
        "set_creator", "storage_layout", "storage_offset",
    },
    "nn.functional": set(), "genesis.linalg": set(), "genesis.fft": set(), "genesis.special": set(), "nn.init": set(),
    "genesis.autograd": {"gradcheck", "gradgradcheck", "numerical_gradient_check"}, "genesis.func": {"functional_call"},
    "nn.Module": {
        "__delattr__", "_backward_hooks", "_forward_hooks", "_forward_pre_hooks", "_register_load_state_dict_pre_hook",
        "_register_state_dict_hook", "load_state_dict", "register_backward_hook", "register_buffer", "register_forward_hook",
        "register_forward_pre_hook", "register_full_backward_hook", "register_full_backward_pre_hook",
        "register_load_state_dict_post_hook", "register_load_state_dict_pre_hook", "register_parameter",
        "register_state_dict_post_hook", "register_state_dict_pre_hook", "state_dict",
    },
    "optim.Optimizer": {
        "_hooked", "_hooks_of", "_step_among_hooks", "_through_hooks", "add_param_group", "load_state_dict", "state_dict",
        "register_load_state_dict_post_hook", "register_load_state_dict_pre_hook", "register_state_dict_post_hook",
        "register_state_dict_pre_hook", "register_step_post_hook", "register_step_pre_hook",
    },
}


def function_behind(member):
    """The Python function of a function, method or property."""
    member = getattr(member, "__func__", member)
    return member.fget if isinstance(member, property) else member


@pytest.mark.parametrize("where", UNLISTED)
def test_every_public_function_is_listed_or_known_not_to_be(where):
    owner = eval(where)
    for name in dir(owner):
        getattr(owner, name, None)  # what is imported when it is asked for
    found = {name: function_behind(inspect.getattr_static(owner, name, None)) for name in dir(owner)}
    functions = {name: function for name, function in found.items() if isinstance(function, FunctionType)}
    ours = {name for name, f in functions.items() if str(f.__globals__["__name__"]).startswith("genesis")}
    unlisted = {name for name in ours if not is_replayable(functions[name].__code__, functions[name].__globals__)}
    assert unlisted - {"compile"} == UNLISTED[where]


@pytest.mark.parametrize("module", [*MODULES, *PACKAGES])
def test_the_tables_of_modules_and_their_exceptions_name_what_exists(module):
    table = MODULES.get(module, PACKAGES.get(module))
    for name in (f"{module}.{name}" for name in table.split()):
        assert importlib.util.find_spec(name), name
    names = {f"{module}.{name}" for name in table.split()} if module in MODULES else {
        name for name in sys.modules if f"{name}.".startswith(f"{module}.")}
    for one in map(importlib.import_module, names):
        exceptions = getattr(one, "NOT_REPLAYABLE", ())
        assert not exceptions or {*exceptions} <= names_of_functions(compile(inspect.getsource(one), "", "exec"))


@pytest.mark.parametrize("module", FUNCTIONS)
def test_single_functions_that_may_be_replayed_exist(module):
    def qualnames(code):
        within = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        return {code.co_qualname, *itertools.chain(*map(qualnames, within))}

    known = qualnames(compile(inspect.getsource(importlib.import_module(module)), "", "exec"))
    assert {*FUNCTIONS[module].split()} <= known


def names_of_functions(code):
    """The names of the functions and classes whose code is part of this code."""
    within = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return {code.co_name}.union(*map(names_of_functions, within))


def test_exceptions_are_what_they_name_and_all_within():
    names = {"__name__": "genesis.nn.made_late", "NOT_REPLAYABLE": ("left", "Left")}
    exec("""
def kept(): return lambda: 0
def left(): return lambda: 0
class Left:
    def method(self): pass
""", names)
    functions = [names["kept"], names["kept"](), names["left"], names["left"](), names["Left"].method]
    assert [is_replayable(f.__code__, f.__globals__) for f in functions] == [True, True, False, False, False]
    assert not is_replayable(names["kept"].__code__, {"__name__": "genesis.nn.members"})


def test_no_instruction_is_unknown_but_a_few():
    unknown = {name for name in dis.opmap if not name.startswith(("INSTRUMENTED", "<"))} - UNDERSTOOD
    assert not {name for name in unknown if name.startswith(("LOAD_FAST", "POP_JUMP", "BINARY", "BUILD_L", "CALL"))} - {
        "CALL_NON_PY_GENERAL"}
    assert "GET_AWAITABLE" in unknown
    assert "IMPORT_STAR" in unknown or "IMPORT_STAR" not in dis.opmap  # it is none of its own from Python 3.12 on


def test_an_instruction_that_is_not_understood_is_named():
    async def waits():
        return await waits()

    assert names_in(waits.__code__).unknown[0] in ("GET_AWAITABLE", "GET_AITER")


lock, counter, log = threading.Lock(), itertools.count(1), logging.getLogger("test")
NOT_UNDERSTOOD = {
    "a function of C": (lambda x: x * time.time(), "it calls time"),
    "a function of C that is handed on": (lambda x: x * sum(map(time.gmtime, ())), "gmtime"),
    "a module of Python's": (lambda x: x * (1 + log.hasHandlers()), "logging"),
    "a kind of object": (lambda x: x * lock.locked(), "_thread.lock"),
    "an iterator": (lambda x: x * next(counter), "iterator"),
    "a function of the library": (lambda x: x * len(nn.Linear(1, 1).state_dict()), "state_dict"),
    "a function of the library, held elsewhere": (lambda x: seed_of[0](0) or x, "manual_seed"),
    "PyTorch's function of that name": (lambda x: torch_state.manual_seed(0) and x, "manual_seed"),
    "where a view lies": (lambda x: x * x.is_set_to(X), "is_set_to"),
    "a setting": (lambda x: x * genesis.sparse.check_sparse_tensor_invariants.is_enabled(), "is_enabled"),
    "a name of a tensor's own": (lambda x: x * x._version, "_version"),
}
seed_of = [genesis.manual_seed]


@pytest.mark.parametrize("what", NOT_UNDERSTOOD)
def test_what_is_not_understood_is_called_each_time_and_explained_with_its_line(what):
    function, reason = NOT_UNDERSTOOD[what]
    compiled = genesis.compile(function)
    for _ in range(3):
        compiled(X)
    assert not compiled.entries
    told = [str(refusal) for refusal in explain(function, X).refusals]
    assert any(reason in line and HERE in line for line in told), told


def test_an_ordinary_step_is_understood():
    model = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.LayerNorm(4), nn.Linear(4, 1))
    optimizer = optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 3)

    @genesis.compile
    def step(x):
        if x.dim() != 2:
            warnings.warn("a function that is known to nobody, and not called", stacklevel=2)
        x = getattr(F, "re" + "lu")(x)
        optimizer.zero_grad(set_to_none=True)
        with genesis.autocast(enabled=False):
            loss = F.mse_loss(model(x), x.sum(-1, keepdim=True))
        loss.backward()
        nn.utils.clip_grad_norm_([p for p in model.parameters() if p.grad is not None], 1.0)
        optimizer.step()
        scheduler.step()
        return {"loss": loss.detach(), "device": x.device, "rows": x.size(0), "last": x.dim() - 1}

    for _ in range(5):
        step(genesis.ones(2, 3))
    assert step.refusals == [] and step.entries[0].replays >= 3
