"""A report on the installation: versions, processor, threads, cache, CUDA, and commands that repair what is missing."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from genesis.codegen.cpu.product.interface import tile_of
from genesis.codegen.cpu.tiling import vector_bytes
from genesis.debug.cuda_probe import SAYS
from genesis.ir.annotations import Tree
from genesis.runtime.content_store import SIZE_LIMIT
from genesis.runtime.installation import install_command
from genesis.runtime.machine_code import target
from genesis.runtime.number_of_threads import get_num_threads
from genesis.runtime.private_directory import cache_directory
from genesis.runtime.system import available_processors

NEEDED = ("numba", "llvmlite", "numpy", "scipy", "ml_dtypes")
FEATURES = ("avx", "avx2", "fma", "f16c", "avx512f", "avx512bf16", "neon", "sve")  # that make kernels faster
OPTIONAL = ("nvmath-python", "cublas", "nccl")  # CUDA works without them, with our own kernels for products
NUMBERED = ("cuda-bindings", "nvvm", "nvrtc", "nvJitLink", "cublas")  # versioned like CUDA
OLDEST = [7, 5]  # the lowest compute capability of CUDA 13
PROBE = Path(__file__).with_name("cuda_probe.py")
PATIENCE = 60.0  # seconds allowed for loading the parts of CUDA


class Finding(NamedTuple):
    """The finding about one part; `mend` is the command that repairs it, if there is one."""

    about: str
    value: str
    mend: str = ""


@dataclass(frozen=True, repr=False)
class Report:
    """The doctor's findings, by topic; `str` has all."""

    topics: Mapping[str, list[Finding]]

    def __getitem__(self, about: str) -> str:
        """The finding on one topic."""
        return next(finding.value for findings in self.topics.values() for finding in findings if finding.about == about)

    @property
    def mends(self) -> list[str]:
        """The commands that repair missing or broken parts, each once."""
        return list(dict.fromkeys(f.mend for findings in self.topics.values() for f in findings if f.mend))

    def __str__(self) -> str:
        lines = []
        for topic, findings in self.topics.items():
            lines += [topic, *(f"    {finding.about:<20}{finding.value}" for finding in findings)]
        return "\n".join([*lines, *(f"to mend it: {command}" for command in self.mends)])

    def __repr__(self) -> str:
        return f"<Report on {', '.join(self.topics)}: {len(self.mends)} to mend>"


def doctor() -> Report:
    """Print and return a report on the installation, with commands that repair what is missing.

    Missing and broken parts are lines of the report, not errors. `python -m genesis doctor` prints it too.

    >>> report = genesis.doctor()  # doctest: +ELLIPSIS
    software
        ...
    >>> report["genesis"], report.mends
    ('0.1.0', [])
    """
    report = Report({"software": list(_software()), "processor": list(_processor()), "CUDA": list(_cuda())})
    print(report)
    return report


def _software() -> Iterator[Finding]:
    yield Finding("Python", f"{platform.python_version()}, {platform.system()} {platform.machine()}, {sys.executable}")
    yield Finding("genesis", sys.modules["genesis"].__version__)
    for package in NEEDED:
        try:
            yield Finding(package, importlib.metadata.version(package))
        except importlib.metadata.PackageNotFoundError:
            yield Finding(package, "not installed", install_command())


def _processor() -> Iterator[Finding]:
    _, name, features = target()
    has = features.split(",")
    yield Finding("model", " ".join([name, *(feature for feature in FEATURES if f"+{feature}" in has)]))
    yield Finding("vectors", f"{vector_bytes()} bytes")
    for dtype in ("float32", "float64"):
        tile = tile_of(dtype)
        yield Finding(f"{dtype} products", f"{tile.rows} x {tile.columns} in registers")
    yield Finding("threads", f"{get_num_threads()} for {available_processors()} processors")
    yield _cache()


def _cache() -> Finding:
    directory = cache_directory("kernels")
    if directory is None:
        return Finding("kernel cache", "none: no folder that only you can write to", "export GENESIS_CACHE_DIR=$HOME/.genesis")
    size = 0
    with os.scandir(directory) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # another process may rename or remove its files
                size += entry.stat(follow_symlinks=False).st_size
    writable = "writable" if os.access(directory, os.W_OK) else "read-only: what is not there is compiled by each process"
    return Finding("kernel cache", f"{directory}: {size >> 20} of {SIZE_LIMIT >> 20} MiB, {writable}")


def _cuda() -> Iterator[Finding]:
    """The driver, the GPUs, and the parts that compile for them, which are reported missing only if there is a driver."""
    found = _probed()
    state, driver = found.pop("driver", ("broken", "the search for it did not begin"))
    yield from _driver(state, driver)
    is_old = state == "found" and (driver["cuda"][0] < 13 or any([*capability] < OLDEST for _, capability, _ in driver["gpus"]))
    mend = install_command("cuda12" if is_old else "cuda13")
    wanted = state == "found" or any(found[part][0] == "found" for part in found if part not in OPTIONAL)
    if os.environ.get("NUMBA_ENABLE_CUDASIM") not in (None, "", "0"):
        yield Finding("simulator", "on (NUMBA_ENABLE_CUDASIM): kernels run as Python, on no GPU")
    for part, (outcome, what) in found.items():
        missed = wanted and not (part in OPTIONAL and state != "found")
        if part == "nccl" and outcome != "found":
            text = "not installed: GPUs of several processes do not communicate" if outcome == "missing" else f"broken: {what}"
            yield Finding(part, text, install_command("nccl") if outcome == "broken" else "")
        elif outcome == "found" and is_old and part in NUMBERED and what.startswith("13."):
            yield Finding(part, f"{what}: newer than the driver or the GPU takes", mend)
        elif outcome == "found":
            yield Finding(part, what)
        else:
            text = "not installed" if outcome == "missing" else f"broken: {what}"
            yield Finding(part, text, mend if missed or outcome == "broken" else "")


def _driver(state: str, driver: Tree) -> Iterator[Finding]:
    """The driver and its GPUs."""
    if state != "found":
        none = "none: kernels can be compiled, but there is no NVIDIA driver (libcuda.so.1) to run them"
        yield Finding("driver", none if state == "missing" else f"broken: {driver}")
    else:
        yield Finding("driver", f"runs CUDA {_dotted(driver['cuda'])}")
        for number, (name, capability, size) in enumerate(driver["gpus"]):
            yield Finding(f"cuda:{number}", f"{name}, {size / (1 << 30):.1f} GiB, compute capability {_dotted(capability)}")
        if not driver["gpus"]:
            yield Finding("GPU", "none that the driver shows")


def _probed() -> dict[str, tuple[str, Tree]]:
    """Each part's outcome: found, missing or broken, and what or why.

    A part that ends the process is broken; a new process tries the others.
    """
    found: dict[str, tuple[str, Tree]] = {}
    while True:
        command = [sys.executable, "-P", str(PROBE), *found]
        try:
            output = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
        except subprocess.TimeoutExpired as expired:
            output = (expired.stdout or b"").decode(errors="replace")
        said = [line.partition(SAYS)[2] for line in output.splitlines() if line.startswith(SAYS)]  # parts may print other lines
        lines = [json.loads(text) for text in said]
        found |= {name: ("broken", "it ends the process that loads it, or never loads") for name, state, _ in lines[-1:]
                  if state == "began"}
        found |= {name: (state, what) for name, state, what in lines if state != "began"}
        if not lines or lines[-1][1] != "began":
            return found


def _dotted(numbers: list[int]) -> str:
    return ".".join(map(str, numbers))
