"""Run random programs in every way that there is, and compare what they show to the bit.

    python tools/fuzz.py [--programs 1000] [--seed 0] [--batch 500] [--torch]

Program k is that of seed + k (`tests/fuzz/scenes.py`). It runs by NumPy's references, operation by operation, lazily and
compiled; with --torch, by the references and by PyTorch. Each batch is a process of its own, so a crash costs that program
alone. Of programs that differ a minimal one is printed. The exit status is 0 if there was none.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))


def run_batch(seeds: Iterable[int], with_torch: bool) -> None:
    """Run the programs of these seeds, and print what becomes of each: what the other process reads."""
    from genesis.debug import stats
    from tests.fuzz.scenes import script
    from tests.fuzz.shrinking import shrunk
    from tests.fuzz.worlds import InexactError, difference, unlike_torch

    differs = unlike_torch if with_torch else difference
    for seed in seeds:
        print(f"@begin {seed}", flush=True)
        made: list = []
        try:
            found = differs(script(seed), made)
        except InexactError:
            print("@count inexact 1", flush=True)
            continue
        print(f"@count replays {sum(entry.replays for one in made for entry in one.entries)}")
        if found:
            smaller, told = shrunk(script(seed), differs)
            print(f"seed {seed} differs: {found}\n\n{smaller.source()}\n{told}", flush=True)
            print("@count different 1", flush=True)
    print(f"@count kernels {stats()['kernels_compiled']}")


def run(seeds: range, with_torch: bool) -> Counter[str]:
    """Run a batch in a process of its own, and another from the program on that follows one that ended the process."""
    counts: Counter[str] = Counter()
    start = seeds.start
    while start < seeds.stop:
        command = [sys.executable, __file__, "--worker", str(start), str(seeds.stop), *(["--torch"] if with_torch else [])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            assert process.stdout is not None
            seed = start
            for line in process.stdout:
                words = line.split()
                if line.startswith("@begin"):
                    seed = int(words[1])
                elif line.startswith("@count"):
                    counts[words[1]] += int(words[2])
                else:
                    print(line, end="", flush=True)
        if process.returncode == 0:
            break
        print(f"seed {seed} ends its process: exit status {process.returncode}", flush=True)
        counts["ended"] += 1
        start = seed + 1
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--worker", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        run_batch(range(*given.worker), given.torch)
        return 0
    counts: Counter[str] = Counter()
    started, end = time.perf_counter(), given.seed + given.programs
    for start in range(given.seed, end, given.batch):
        counts += run(range(start, min(start + given.batch, end)), given.torch)
        done = min(start + given.batch, end) - given.seed
        print(f"{done} programs, {counts['different']} different, {counts['ended']} ended, {counts['inexact']} inexact, "
              f"{counts['replays']} replays, {counts['kernels']} kernels, {time.perf_counter() - started:.0f} s", flush=True)
    return 1 if counts["different"] or counts["ended"] else 0


if __name__ == "__main__":
    sys.exit(main())
