"""Runs programs written for PyTorch, unmodified, under the door and under PyTorch, and compares what they print.

    python tools/run_public_code.py FOLDER [NAME ..]

FOLDER/programs/*.py are the programs (NAME chooses some by a part of their names); FOLDER, FOLDER/lib and the folders right
below FOLDER/checkouts are on the path of both. Public code stays outside of the repository. What PyTorch printed is kept in
FOLDER/printed, for as long as the program is not newer.

So that both libraries see the same numbers, both processes draw random numbers from NumPy, fill the parameters of a network
by their names when it is first called, and leave nothing out in dropout.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?")
INITIALIZERS = ("uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_",
                "kaiming_normal_", "orthogonal_", "sparse_")


def prelude() -> None:
    """Make both libraries draw the same numbers. Runs in the program's process, after `import torch` can find either."""
    import random

    import numpy as np

    random.seed(0)
    np.random.seed(0)
    draw_from_numpy(np.random.RandomState(0))
    fill_parameters()
    keep_everything()


def draw_from_numpy(draw: Any) -> None:
    """Replace torch's functions and methods that draw random numbers."""
    import numpy as np
    import torch

    def shape_of(size: tuple) -> tuple:
        return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)

    def made(values: object, dtype: object = None, device: object = None, requires_grad: bool = False, **_: object) -> object:
        return torch.as_tensor(np.asarray(values)).to(dtype or torch.get_default_dtype()).requires_grad_(requires_grad)

    def randint(*given: object, size: object = None, low: int = 0, high: int | None = None, **keywords: object) -> object:
        listed = list(given)
        shape = size if size is not None else listed.pop()
        if listed:
            low, high = (0, listed[0]) if len(listed) == 1 else listed[:2]
        return made(draw.randint(int(low), int(high), tuple(shape)), keywords.pop("dtype", None) or torch.int64, **keywords)

    def normal(mean: object = 0.0, std: object = 1.0, size: object = None, **keywords: object) -> object:
        shape = size if size is not None else np.broadcast_shapes(np.shape(mean), np.shape(std))
        return made(draw.randn(*shape), **keywords) * std + mean

    def multinomial(input: Any, num_samples: int, replacement: bool = False, **_: object) -> object:
        rows = input.detach().double().reshape(-1, input.shape[-1]).numpy()
        chosen = [draw.choice(len(row), num_samples, replacement, row / row.sum()) for row in rows]
        return made(chosen, torch.int64).reshape(*input.shape[:-1], num_samples)

    def writing(values_of: Any, begins: bool = False) -> Any:
        """The function that writes `values_of(generator, shape, ..)`; where a layer begins, the same ones for each size."""
        def write(self: Any, *args: Any, generator: object = None, **kwargs: Any) -> Any:
            first = begins or sys._getframe(1).f_globals.get("__name__", "").partition(".")[2].startswith("nn")
            source = np.random.RandomState(self.numel() % 9999) if first else draw
            values = values_of(source, tuple(self.shape), *args, **kwargs)
            with torch.no_grad():
                return self.copy_(torch.as_tensor(np.asarray(values)).to(self.dtype))
        return write

    torch.randn = lambda *size, **k: made(draw.randn(*shape_of(size or (k.pop("size"),))), **k)
    torch.rand = lambda *size, **k: made(draw.rand(*shape_of(size or (k.pop("size"),))), **k)
    torch.randint, torch.normal, torch.multinomial = randint, normal, multinomial
    torch.randn_like = lambda x, dtype=None, **k: made(draw.randn(*x.shape), dtype or x.dtype)
    torch.rand_like = lambda x, dtype=None, **k: made(draw.rand(*x.shape), dtype or x.dtype)
    torch.randint_like = lambda x, *ends, **k: randint(*ends, tuple(x.shape), dtype=k.get("dtype") or x.dtype)
    torch.randperm = lambda n, **k: made(draw.permutation(n), torch.int64)
    torch.bernoulli = lambda input, **k: made(draw.rand(*input.shape) < input.detach().numpy(), input.dtype)
    torch.Tensor.multinomial, torch.Tensor.bernoulli = multinomial, torch.bernoulli
    torch.Tensor.uniform_ = writing(lambda draw, shape, a=0.0, b=1.0, **ends: draw.uniform(
        ends.get("from", a), ends.get("to", b), shape))
    torch.Tensor.normal_ = writing(lambda draw, shape, mean=0.0, std=1.0: draw.normal(mean, std, shape))
    torch.Tensor.exponential_ = writing(lambda draw, shape, lambd=1.0: draw.exponential(1 / lambd, shape))
    torch.Tensor.bernoulli_ = writing(lambda draw, shape, p=0.5: draw.rand(*shape) < np.asarray(p))
    for name in INITIALIZERS:
        setattr(torch.nn.init, name, writing(lambda draw, shape, *_, **k: draw.randn(*shape) * 0.05, begins=True))
        getattr(torch.nn.init, name).__name__ = name  # by which libraries register them
    for path, module in [*sys.modules.items()]:  # which draw by functions of genesis' own
        if path.startswith("genesis.distributions"):
            for name in {"rand", "randn", "multinomial"} & vars(module).keys():
                setattr(module, name, getattr(torch, name))
    torch.utils.data.RandomSampler.__iter__ = lambda self: iter(
        draw.choice(len(self.data_source), self.num_samples, self.replacement).tolist())
    torch.Tensor.random_ = writing(  # a loader draws its workers' seed so, or not
        lambda draw, shape, a=2**24, b=None: draw.randint(0 if b is None else a, b or a, shape), begins=True)


def fill_parameters() -> None:
    """Give parameters values by their names, when a module that has them is called."""
    import zlib

    import numpy as np
    import torch

    filled: dict[int, object] = {}
    plain = torch.nn.Module.__call__

    def call(self: Any, *args: object, **kwargs: object) -> object:
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if parameter.is_leaf and isinstance(parameter, torch.nn.Parameter) and id(parameter) not in filled and (
                    not isinstance(parameter, torch.nn.parameter.UninitializedParameter)
                ):
                    values = np.random.RandomState(zlib.crc32(name.encode())).randn(*parameter.shape) * 0.05
                    if parameter.ndim <= 1 and not name.endswith("bias"):
                        values = values + 1
                    value = torch.as_tensor(np.asarray(values)).to(parameter.dtype)
                    if 0 in parameter.stride():  # several elements are one in memory
                        parameter.data = value
                    else:
                        parameter.copy_(value)
                    filled[id(parameter)] = parameter
        return plain(self, *args, **kwargs)

    torch.nn.Module.__call__ = call


def keep_everything() -> None:
    """Have dropout leave nothing out."""
    import torch

    attention = torch.nn.functional.scaled_dot_product_attention
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):
        setattr(torch.nn.functional, name, lambda input, *_, **k: input)
    for name in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"):
        getattr(torch.nn, name).forward = lambda self, input: input
    torch.nn.functional.scaled_dot_product_attention = lambda query, key, value, mask=None, p=0.0, *others, **k: attention(
        query, key, value, k.pop("attn_mask", mask), k.pop("dropout_p", p) * 0, *others, **k)

    heads = torch.nn.functional.multi_head_attention_forward  # dropout is its eleventh argument
    torch.nn.functional.multi_head_attention_forward = lambda *given, **k: heads(*given[:10], 0.0, *given[11:], **k)

    def whole(forward: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            self.dropout = 0.0
            return forward(self, *args, **kwargs)
        return call

    for kind in (torch.nn.MultiheadAttention, torch.nn.RNN, torch.nn.LSTM, torch.nn.GRU):
        kind.forward = whole(kind.forward)


def run(program: Path, folder: Path, python: str, door: bool, limit: float) -> tuple[str, str, float]:
    """(output, last line of the error or "", seconds) of a program in a process of its own."""
    checkouts = sorted(p for p in (folder / "checkouts").glob("*") if p.is_dir())
    path = [ROOT, folder, folder / "lib", *checkouts]
    start = "import genesis.as_torch; genesis.as_torch.install(); " if door else ""
    command = (f"import sys, runpy; sys.path.insert(0, {str(ROOT / 'tools')!r}); {start}"
               f"from run_public_code import prelude; prelude(); runpy.run_path({str(program)!r}, run_name='__main__')")
    begun = time.perf_counter()
    try:
        done = subprocess.run([python, "-W", "ignore", "-c", command], capture_output=True, text=True, timeout=limit,
                              cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))})
        problem = done.stderr.strip().splitlines()[-1:] or [f"exit {done.returncode}"] if done.returncode else []
    except subprocess.TimeoutExpired:
        return "", f"longer than {limit:.0f} s", limit
    return done.stdout, "".join(problem), time.perf_counter() - begun


def run_pytorch(program: Path, folder: Path, python: str, limit: float) -> tuple[str, str, float]:
    """What `run` gives under PyTorch, now or since the program was written."""
    kept = folder / "printed" / f"{program.stem}.json"
    if not kept.exists() or kept.stat().st_mtime < program.stat().st_mtime:
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps(run(program, folder, python, False, limit)))
    output, problem, seconds = json.loads(kept.read_text())
    return output, problem, seconds


def difference(ours: str, theirs: str, tolerance: float = 1e-3) -> str:
    """The first line that differs by more than rounding; "" if there is none."""
    for here, there in zip(ours.splitlines(), theirs.splitlines(), strict=False):
        if NUMBER.sub("#", here) != NUMBER.sub("#", there):
            return f"{here!r:.150} instead of {there!r:.150}"
        for a, b in zip(NUMBER.findall(here), NUMBER.findall(there), strict=False):
            if abs(float(a) - float(b)) > tolerance * max(1.0, abs(float(b))):
                return f"{here!r:.150} instead of {there!r:.150}"
    return "" if len(ours.splitlines()) == len(theirs.splitlines()) else "another number of lines"


def verdict_of(program: Path, given: argparse.Namespace) -> str:
    """"equal", or what is wrong; "not under PyTorch" before anything else."""
    theirs, their_problem, their_seconds = run_pytorch(program, given.folder, given.pytorch, given.limit)
    if their_problem:
        print(f"{program.stem:40} not under PyTorch: {their_problem:.200}", flush=True)
        return "not under PyTorch"
    ours, problem, seconds = run(program, given.folder, sys.executable, True, given.limit)
    verdict = problem or difference(ours, theirs) or "equal"
    print(f"{program.stem:40} {seconds:6.1f} s, PyTorch {their_seconds:6.1f} s  {verdict:.300}", flush=True)
    return "raises" if problem else "equal" if verdict == "equal" else "differs"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each program")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time")
    parser.add_argument("--pytorch", default=sys.executable, help="the Python that has PyTorch")
    given = parser.parse_intermixed_args()
    programs = [path for path in sorted((given.folder / "programs").glob("*.py"))
                if not given.names or any(name in path.stem for name in given.names)]
    with ThreadPoolExecutor(given.jobs) as pool:
        verdicts = [*pool.map(lambda program: verdict_of(program, given), programs)]
    counts = {verdict: verdicts.count(verdict) for verdict in ("equal", "differs", "raises", "not under PyTorch")}
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 1 if counts["differs"] or counts["raises"] else 0


if __name__ == "__main__":
    sys.exit(main())
