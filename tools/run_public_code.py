"""Runs programs written for PyTorch, unmodified, under the door and under PyTorch, and compares what they print.

    python tools/run_public_code.py FOLDER [NAME ..]

FOLDER/programs/*.py are the programs (NAME chooses some by a part of their names); FOLDER, FOLDER/lib and the folders right
below FOLDER/checkouts are on the path of both. Public code stays outside of the repository.

So that both libraries see the same numbers, both processes draw random numbers from NumPy, fill the parameters of a network
by their names when it is first called, and leave nothing out in dropout.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?")


def prelude() -> None:
    """Make both libraries draw the same numbers. Runs in the program's process, after `import torch` can find either."""
    import zlib

    import numpy as np
    import torch

    draw = np.random.RandomState(0)

    def shape_of(size: tuple) -> tuple:
        return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)

    def made(values: object, dtype: object = None, device: object = None, **_: object) -> object:
        return torch.as_tensor(np.asarray(values)).to(dtype or torch.get_default_dtype())

    def randint(*given: object, size: object = None, low: int = 0, high: int | None = None, **keywords: object) -> object:
        listed = list(given)
        shape = size if size is not None else listed.pop()
        if listed:
            low, high = (0, listed[0]) if len(listed) == 1 else listed[:2]
        return made(draw.randint(int(low), int(high), tuple(shape)), keywords.get("dtype") or torch.int64)

    torch.randn = lambda *size, size_=None, **k: made(draw.randn(*shape_of(size or (k.pop("size"),))), k.get("dtype"))
    torch.rand = lambda *size, **k: made(draw.rand(*shape_of(size or (k.pop("size"),))), k.get("dtype"))
    torch.randint = randint
    torch.randn_like = lambda x, **k: made(draw.randn(*x.shape), x.dtype)
    torch.rand_like = lambda x, **k: made(draw.rand(*x.shape), x.dtype)
    torch.randperm = lambda n, **k: made(draw.permutation(n), torch.int64)

    def fill(module: object) -> None:
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                values = np.random.RandomState(zlib.crc32(name.encode())).randn(*parameter.shape) * 0.05
                if parameter.ndim <= 1 and not name.endswith("bias"):
                    values = values + 1
                parameter.copy_(torch.as_tensor(np.asarray(values)).to(parameter.dtype))
                filled.append(parameter)

    filled: list = []
    plain = torch.nn.Module.__call__

    def call(self: object, *args: object, **kwargs: object) -> object:
        if not any(p is q for p in self.parameters() for q in filled[-4096:]):
            fill(self)
        return plain(self, *args, **kwargs)

    torch.nn.Module.__call__ = call
    torch.nn.functional.dropout = lambda input, *_, **k: input
    torch.nn.Dropout.forward = lambda self, input: input


def run(program: Path, folder: Path, door: bool, limit: float) -> tuple[str, str, float]:
    """(output, last line of the error or "", seconds) of a program in a process of its own."""
    checkouts = sorted(p for p in (folder / "checkouts").glob("*") if p.is_dir())
    path = [ROOT, folder, folder / "lib", *checkouts]
    start = "import genesis.as_torch; genesis.as_torch.install(); " if door else ""
    command = (f"import sys, runpy; sys.path.insert(0, {str(ROOT / 'tools')!r}); {start}"
               f"from run_public_code import prelude; prelude(); runpy.run_path({str(program)!r}, run_name='__main__')")
    begun = time.perf_counter()
    try:
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", command], capture_output=True, text=True, timeout=limit,
                              cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))})
        problem = done.stderr.strip().splitlines()[-1:] if done.returncode else []
    except subprocess.TimeoutExpired as late:
        return str(late.stdout or ""), f"longer than {limit:.0f} s", limit
    return done.stdout, "".join(problem), time.perf_counter() - begun


def difference(ours: str, theirs: str, tolerance: float = 1e-3) -> str:
    """The first line that differs by more than rounding; "" if there is none."""
    for here, there in zip(ours.splitlines(), theirs.splitlines(), strict=False):
        if NUMBER.sub("#", here) != NUMBER.sub("#", there):
            return f"{here!r:.150} instead of {there!r:.150}"
        for a, b in zip(NUMBER.findall(here), NUMBER.findall(there), strict=False):
            if abs(float(a) - float(b)) > tolerance * max(1.0, abs(float(b))):
                return f"{here!r:.150} instead of {there!r:.150}"
    return "" if len(ours.splitlines()) == len(theirs.splitlines()) else "another number of lines"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each program")
    given = parser.parse_intermixed_args()
    good = total = 0
    for program in sorted((given.folder / "programs").glob("*.py")):
        if given.names and not any(name in program.stem for name in given.names):
            continue
        ours, problem, seconds = run(program, given.folder, True, given.limit)
        theirs, their_problem, their_seconds = run(program, given.folder, False, given.limit)
        verdict = problem or difference(ours, theirs) or "equal"
        if their_problem:
            verdict = f"{verdict}; under PyTorch: {their_problem}"
        total, good = total + 1, good + (verdict == "equal")
        print(f"{program.stem:24} {seconds:6.1f} s, PyTorch {their_seconds:6.1f} s  {verdict}", flush=True)
    print(f"{good} of {total} print what they print under PyTorch")
    return 0 if good == total else 1


if __name__ == "__main__":
    sys.exit(main())
