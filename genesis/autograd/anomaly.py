"""The search for the first NaN of a backward."""

from __future__ import annotations

from genesis.autograd.hooks import GradientEvent, add_observer, observers
from genesis.execution.realize import realize
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tracing.source_line import line_name
from genesis.tracing.state import grad_mode, thread_state


class AnomalyError(RuntimeError):
    """A step of backward produced NaN."""


class _NanSearch:
    """Finds the first step of a recorded backward that produced NaN from gradients without NaN."""

    def __init__(self) -> None:
        self._steps: list[tuple[GradientEvent, int, Tensor]] = []

    def observe(self, event: GradientEvent) -> None:
        with grad_mode(False):
            for argument, gradient in enumerate(event.passed):
                if gradient is not None:
                    flag = call(OPERATIONS["any"], (call(OPERATIONS["isnan"], (gradient,)),))
                    self._steps.append((event, argument, flag))

    def finish(self) -> None:
        steps, self._steps = self._steps, []
        for event, argument, flag in steps:
            if realize(flag._array).numpy(flag.dtype).item():
                where = f" of the operation at {line_name(event.line)}" if event.line else ""
                raise AnomalyError(f"backward: {event.name}{where} gave nan as the gradient of its argument {argument}")


def _search_by(searches: list[_NanSearch]) -> None:
    """Have these searches observe, and no other ones."""
    thread_state.observers = (*[o for o in thread_state.observers if not isinstance(o, _NanSearch)], *searches)


class detect_anomaly:
    """A context in which a backward that computes a NaN raises AnomalyError, with the line of the operation.

    Every step of backward is checked, which is slow. With `check_nan=False` none is.

    >>> x = genesis.tensor(0., requires_grad=True)
    >>> with genesis.autograd.detect_anomaly():
    ...     (x.sqrt() * 0).backward()  # 0 * inf
    Traceback (most recent call last):
    ...
    genesis.autograd.anomaly.AnomalyError: ...
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._before: list[list[_NanSearch]] = []
        self._check_nan = check_nan

    def __enter__(self) -> None:
        self._before.append(observers(_NanSearch))
        if self._check_nan:
            add_observer(_NanSearch())

    def __exit__(self, *problem: object) -> None:
        _search_by(self._before.pop())


class set_detect_anomaly(detect_anomaly):
    """`detect_anomaly` switched on or off at once; as a context, back on exit.

    >>> with genesis.autograd.set_detect_anomaly(False):
    ...     genesis.tensor(0., requires_grad=True).sqrt().backward()
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(check_nan)
        self._before.append(observers(_NanSearch))
        _search_by([_NanSearch()] if mode and check_nan else [])

    def __enter__(self) -> None:
        pass


def is_anomaly_enabled() -> bool:
    """Whether backward checks for NaN in this thread.

    >>> with genesis.autograd.detect_anomaly():
    ...     genesis.autograd.anomaly.is_anomaly_enabled()
    True
    """
    return bool(observers(_NanSearch))
