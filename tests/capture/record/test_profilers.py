"""Functions are recorded under a profiler as without one, and it goes on; recording sees nothing of planning."""

import cProfile
import ctypes
import pstats
import sys

import genesis
from tests.runtime.kernels import run_python

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)


def outer(step, x):
    return inner(step, x)


def inner(step, x):
    total = step(x).item()
    return len([total])


def test_cprofile_sees_what_calls_a_function_that_is_recorded():
    profile, x = cProfile.Profile(), genesis.ones(3)
    step = genesis.compile(lambda x: (x * 3).sum())
    profile.enable()
    for _ in range(4):
        outer(step, x)
    profile.disable()
    calls = {name: (count, {caller for _, _, caller in callers})
             for (file, _, name), (count, _, _, _, callers) in pstats.Stats(profile).stats.items() if file in (__file__, "~")}
    assert calls["outer"][0] == calls["inner"][0] == 4
    assert calls["inner"][1] == {"outer"} and calls["<built-in method builtins.len>"][1] >= {"inner"}
    assert step.entries[0].replays == 3


def test_another_profiler_of_c_goes_on():
    seen = []
    callback = CALLBACK(lambda owner, frame, event, argument: seen.append(owner) or 0)
    put, owner = ctypes.pythonapi.PyEval_SetProfile, object()
    put.argtypes = [ctypes.c_void_p, ctypes.py_object]
    step, x = genesis.compile(lambda x: x * 4), genesis.ones(3)
    put(ctypes.cast(callback, ctypes.c_void_p), owner)
    try:
        step(x)
        assert sys.getprofile() is owner
        before = len(seen)
        len(seen)
    finally:
        sys.setprofile(None)
    assert len(seen) > before and set(map(id, seen)) == {id(owner)}
    assert step(x).tolist() == [4, 4, 4]


def test_a_function_of_python_goes_on():
    seen, step, x = [], genesis.compile(lambda x: x * 5), genesis.ones(3)
    hook = lambda frame, event, argument: seen.append(frame.f_code.co_name)  # noqa: E731
    sys.setprofile(hook)
    try:
        step(x)
        assert sys.getprofile() is hook
        inner(step, x[:1])
    finally:
        sys.setprofile(None)
    assert "inner" in seen


def test_what_planning_imports_is_none_of_the_functions():
    told = run_python("""
        import sys
        import genesis

        @genesis.compile
        def scaled(x):
            return x * genesis.linalg.matrix_norm(x, "nuc").item()

        x, before = genesis.ones(4, 4), "scipy.linalg" in sys.modules
        results = [scaled(x)[0, 0].item() for _ in range(3)]
        print(before, "scipy.linalg" in sys.modules, scaled.refusals, sum(entry.replays for entry in scaled.entries))
        print(all(abs(result - 4) < 1e-5 for result in results))
    """)
    assert told == "False True [] 2\nTrue"
