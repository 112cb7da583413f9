"""The runtime without what Linux alone gives, in processes of its own: whether it is used is chosen at import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from genesis.runtime import system

ROOT = Path(__file__).parents[2]
PROGRAM = "tests/runtime/test_program.py"
# What this interpreter has and one on another system does not. The rest is NumPy's work and LLVM's.
BARE = '''
import ctypes, mmap, os, select, signal, subprocess, sys, threading
import llvmlite.binding, numba.core.codegen, numpy, scipy.linalg

for module, names in {
    mmap: "MADV_HUGEPAGE", select: "poll epoll", signal: "pthread_sigmask pthread_kill SIGALRM",
    os: "register_at_fork fork sched_getaffinity sysconf geteuid O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_CLOEXEC",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
os.supports_dir_fd.clear()
genuine = ctypes.CDLL.__init__

def of_a_file(library, name, *rest, **named):
    if name is None:
        raise TypeError("there is no library of the whole process")
    genuine(library, name, *rest, **named)

ctypes.CDLL.__init__ = of_a_file
'''
STEP = '''
import genesis
from genesis.runtime import system
from genesis.runtime.kernel_cache import kernel_cache
from genesis.runtime.team import team

genesis.set_num_threads(3)
weight = genesis.full((64, 1), 0.1, requires_grad=True)
x = genesis.arange(64.0 * 512).reshape(512, 64).cos()
for _ in range(3):
    loss = ((x @ weight - x.sum(1, keepdim=True)) ** 2).mean()
    loss.backward()
    with genesis.no_grad():
        weight -= 0.1 * weight.grad
    weight.grad = None
big = genesis.ones(1 << 21)
with genesis.profiler.profile() as profile:
    total = float((big * 2).sum())
print(weight.sum().item(), total, team.size, system.IS_LINUX, kernel_cache._directory(), len(profile.key_averages()) > 0)
'''


def output_of(*command: str, **environment: str) -> str:
    result = subprocess.run([sys.executable, *command], env=os.environ | environment, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_teams_tests_pass_without_what_linux_alone_gives():
    chosen = "item or share or launches or fork or interrupted or blocks"
    output_of("-m", "pytest", "-q", "-p", "no:cacheprovider", PROGRAM, "-k", chosen, GENESIS_PORTABLE="1")


def test_an_interpreter_with_nothing_of_posix_trains_and_profiles():
    """Team, memory, locks and clock are CPython's own, and no kernel is kept on disk."""
    weight, total, *rest = output_of("-c", BARE + STEP, GENESIS_PORTABLE="1").split()
    x = np.cos(np.arange(64.0 * 512, dtype=np.float32)).reshape(512, 64).astype(float)
    expected = np.full((64, 1), 0.1)
    for _ in range(3):
        expected -= 0.1 * 2 / 512 * x.T @ (x @ expected - x.sum(1, keepdims=True))
    np.testing.assert_allclose(float(weight), expected.sum(), rtol=1e-4)
    assert (float(total), rest) == (1 << 22, ["3", "False", "None", "True"])


def test_memory_is_aligned():
    for alignment in (64, 1 << 21):
        address = system.allocate(100, alignment)
        assert address and address % alignment == 0
        system.free(address)
