"""Timing contestants in turn, and what is said about them."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["PEERS", "Bar", "Limits", "Result", "Settings", "averaged", "compare", "format_seconds", "resident_bytes"]

PEERS = ("torch eager", "torch.compile", "jax.jit")
PAUSE_SECONDS = 0.02  # PyTorch's OpenMP threads have been seen to spin for 8.5 ms
WARM_SECONDS = 0.003


@dataclass(frozen=True)
class Settings:
    """How much to measure, and where: `quick` takes tiny sizes and few rounds, to see that everything runs."""

    quick: bool = False
    rounds: int = 30
    device: str = "cpu"

    def size(self, full: int, tiny: int) -> int:
        return tiny if self.quick else full


@dataclass(frozen=True)
class Bar:
    """A promise, the number measured against it, and whether it was kept."""

    text: str
    value: float
    kept: bool

    @property
    def outcome(self) -> str:
        return "kept" if self.kept else "MISSED"


@dataclass(frozen=True)
class Limits:
    """What is promised: `compiled` over the best of all others, what looks eager over torch eager, and `compiled` over what the
    machine allows (`benchmarks/floors.py`), at most."""

    compiled: float
    eager: float
    floor: float | None = None


@dataclass
class Result:
    """What one benchmark found: median seconds by contestant, other facts, bars."""

    title: str
    medians: dict[str, float] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    bars: list[Bar] = field(default_factory=list)

    def ratio(self, to: str) -> float:
        """genesis' median over another's: below 1, genesis is faster. NaN for one who did not take part."""
        return self.medians["genesis"] / self.medians[to] if to in self.medians else float("nan")

    def hold_to(self, limits: Limits) -> None:
        """Add the bars of `limits`, for those who took part."""
        peers = [self.medians[name] for name in PEERS if name in self.medians]
        if peers and "genesis compiled" in self.medians:
            ratio = self.medians["genesis compiled"] / min(peers)
            self.bars.append(Bar(f"compiled / best of the others, at most {limits.compiled}", ratio, ratio <= limits.compiled))
        if "torch eager" in self.medians:
            ratio = self.ratio("torch eager")
            self.bars.append(Bar(f"eager-looking / torch eager, at most {limits.eager}", ratio, ratio <= limits.eager))

    def beside_floor(self, seconds: float, limits: Limits) -> None:
        """Note what the machine would need at least, and the distance of "genesis compiled" from it."""
        ratio = self.medians["genesis compiled"] / seconds
        self.facts["floor"] = f"{format_seconds(seconds).strip()}, of which genesis compiled takes {ratio:.2f} times"
        if limits.floor is not None:
            self.bars.append(Bar(f"compiled / floor, at most {limits.floor}", ratio, ratio <= limits.floor))

    def no_slower_than(self, *names: str) -> None:
        """Add a bar for each of `names` that took part."""
        for name in names:
            if name in self.medians:
                self.bars.append(Bar(f"ratio to {name} at most 1", self.ratio(name), self.ratio(name) <= 1))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ratios": {name: self.ratio(name) for name in self.medians}}

    def __str__(self) -> str:
        lines = [self.title]
        for name, seconds in self.medians.items():
            ratio = f"   genesis / it: {self.ratio(name):.2f}" if name != "genesis" else ""
            lines.append(f"    {name:<22} {format_seconds(seconds)}{ratio}")
        lines += [f"    {name:<22} absent: {why}" for name, why in self.absent.items()]
        lines += [f"    {name:<22} {value}" for name, value in self.facts.items()]
        lines += [f"    {bar.outcome:<6} {bar.text}: {bar.value:.3g}" for bar in self.bars]
        return "\n".join(lines)


def compare(
    title: str, contestants: Mapping[str, Callable[[], Any] | str], settings: Settings, *, least_seconds: float = 2e-3
) -> Result:
    """Median times of contestants that take turns, round by round; a string in place of one says why it is absent.

    Each is measured as if it had the machine to itself. A turn begins with a pause, in which the threads that the contestant
    before it left spinning fall asleep: OpenMP's spin for milliseconds after a call, on the processor that the next contestant
    wants. Then calls that are not timed fill the caches and wake its own threads, which may spin between its calls as they do
    in a program. Then a short call is repeated until the turn has lasted `least_seconds`, so that the clock is no part of the
    answer. Shorter turns and pauses have shown twice the time of the slower library, whichever that was; these show what
    each takes in a process of its own, within some percent (functions of 256 and 1024 rows).
    """
    result = Result(title, absent={name: why for name, why in contestants.items() if isinstance(why, str)})
    calls = {name: call for name, call in contestants.items() if not isinstance(call, str)}
    repeats = {name: _repeats(call, least_seconds) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    gc.disable()
    try:
        for _ in range(3 if settings.quick else settings.rounds):
            for name, call in calls.items():
                time.sleep(PAUSE_SECONDS)
                _warm(call)
                times[name].append(_timed(call, repeats[name]))
    finally:
        gc.enable()
    result.medians = {name: statistics.median(found) for name, found in times.items()}
    return result


def averaged(title: str, results: Sequence[Result], limits: Limits) -> Result:
    """The geometric means of what `results` were held to, held to `limits`; those that missed their own bars are named."""
    summary = Result(title)
    for promise, limit in (("compiled", limits.compiled), ("eager-looking", limits.eager)):
        held = [(bar, result.title) for result in results for bar in result.bars if bar.text.startswith(promise)]
        if held:
            mean = statistics.geometric_mean([bar.value for bar, _ in held])
            summary.bars.append(Bar(f"{promise}, geometric mean at most {limit}", mean, mean <= limit))
        missed = sorted([(-bar.value, title) for bar, title in held if not bar.kept])
        if missed:
            summary.facts[f"{promise}, missed"] = "; ".join([f"{title} {-value:.2f}" for value, title in missed])
    return summary


def _repeats(call: Callable[[], Any], least_seconds: float) -> int:
    """How many calls last long enough, after warming up."""
    call()  # may compile
    _warm(call)
    return max(1, round(least_seconds / max(_timed(call, 3), 1e-9)))


def _warm(call: Callable[[], Any]) -> None:
    """Call for a while, once at least."""
    began = time.perf_counter()
    call()
    while time.perf_counter() < began + WARM_SECONDS:
        call()


def _timed(call: Callable[[], Any], repeats: int) -> float:
    began = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - began) / repeats


def format_seconds(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    unit, factor = ("s ", 1.0) if seconds >= 1 else ("ms", 1e3) if seconds >= 1e-3 else ("us", 1e6)
    return f"{seconds * factor:9.3f} {unit}"


def resident_bytes() -> int:
    """This process' memory now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096
