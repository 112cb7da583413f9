"""Schedules: the order of a stage's forwards and backwards over the micro-batches of a batch.

Y. Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism", 2019.
D. Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", 2021: 1F1B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from genesis.distributed.pipelining.stage import PipelineStage
from genesis.execution.flush import flush_all
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ops.registry import OPERATIONS
from genesis.pytree import map_tree
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tracing.recording_hooks import is_recording
from genesis.tracing.state import grad_mode

FORWARD, BACKWARD = "forward", "backward"


class _Schedule:
    """Runs a stage over the micro-batches of a batch.

    Args:
        stage: this rank's stage.
        n_microbatches: the number of equal parts of the batch along axis 0.
        loss_fn: `loss_fn(output, target)` of a micro-batch, a scalar; all ranks must pass it. Without it there is no backward.
        scale_grads: whether gradients are divided by the number of micro-batches: those of a mean over the batch.

    Raises ValueError for fewer than one micro-batch.
    """

    def __init__(
        self, stage: PipelineStage, n_microbatches: int, loss_fn: Callable[[Any, Any], Tensor] | None = None, *,
        scale_grads: bool = True,
    ) -> None:
        if not isinstance(stage, PipelineStage):
            raise ArgumentTypeError(f"{type(self).__name__}: the stage is {type(stage).__name__}; want a PipelineStage")
        if n_microbatches < 1:
            raise ArgumentError(f"{type(self).__name__}: {n_microbatches} micro-batches; want one at least")
        self._stage, self._count, self._loss_fn, self._scales = stage, n_microbatches, loss_fn, scale_grads

    def step(
        self, *args: Any, target: Any = None, losses: list[Tensor] | None = None, return_outputs: bool = True, **kwargs: Any
    ) -> Any:
        """Train on a batch: adds gradients to the parameters of all stages. All ranks must call it.

        Args:
            args: the batch, on the first stage only; tensors are split along axis 0.
            target: the loss's target, on the last stage only.
            losses: filled with the micro-batches' losses on the last stage.
            return_outputs: whether the last stage returns the model's outputs of the batch. Other stages return None.
            kwargs: further arguments of this rank's submodule; tensors are split.

        Raises ValueError for a batch that cannot be split evenly, arguments on other stages, a missing target, and a stage
        whose result shapes change between micro-batches.
        """
        return self._run(self._loss_fn is not None, args, target, losses, return_outputs, kwargs)

    def eval(
        self, *args: Any, target: Any = None, losses: list[Tensor] | None = None, return_outputs: bool = True, **kwargs: Any
    ) -> Any:
        """As `step`, without gradients."""
        with grad_mode(False):
            return self._run(False, args, target, losses, return_outputs, kwargs)

    def _run(
        self, derives: bool, args: tuple[Any, ...], target: Any, losses: list[Tensor] | None, returns: bool,
        kwargs: dict[str, Any],
    ) -> Any:
        stage, name = self._stage, type(self).__name__
        if args and not stage.is_first:
            raise ArgumentError(f"{name}: stage {stage.stage_index} takes what stage {stage.stage_index - 1} gives; want the "
                                "batch on the first stage alone")
        wants_target = stage.is_last and self._loss_fn is not None and (derives or target is not None)
        if (target is None) is wants_target:
            raise ArgumentError(f"{name}: stage {stage.stage_index} {'has no' if wants_target else 'has a'} target; want it on "
                                "the last stage, where the loss is taken, and there alone")
        batches = [self._parts((args, kwargs, target), number) for number in range(self._count)]
        before, after = self._ahead(stage.num_stages - stage.stage_index), self._ahead(stage.num_stages - stage.stage_index - 1)
        stage.begin(self._count, *(before, after) if derives else (self._count,) * 2)
        found: list[Any] = []
        found_losses: list[Tensor] = []
        for action, number in self._order(before) if derives else [(FORWARD, number) for number in range(self._count)]:
            if action == BACKWARD:
                stage.backward(number, 1 / self._count if self._scales else 1)
            else:
                given, options, wanted = batches[number]
                output = stage.forward(number, given, options, derives)
                if wants_target:
                    loss = self._loss_fn(output, wanted)  # type: ignore[misc]
                    found_losses.append(_alone(loss))
                    if derives:
                        stage.keep(number, stage.live[number][0], [loss])
                if stage.is_last and returns:
                    found.append(map_tree(_alone, output))
            _compute()
        if losses is not None and stage.is_last:
            losses[:] = found_losses
        return _joined(found) if found else None

    def _parts(self, tree: Any, number: int) -> Any:
        """Micro-batch `number` of all tensors of a tree."""
        def part(each: Any) -> Any:
            if not isinstance(each, Tensor):
                return each
            if not each.ndim or len(each) % self._count:
                raise ArgumentError(f"{type(self).__name__}: a tensor of shape {each.shape} in {self._count} micro-batches; "
                                    f"want a multiple of {self._count} rows")
            size = len(each) // self._count
            return each[number * size : (number + 1) * size]

        return map_tree(part, tree)

    def _ahead(self, stages: int) -> int:
        """The number of micro-batches sent to the last `stages` stages before the first gradient returns."""
        raise NotImplementedError(f"{type(self).__name__} does not say how many micro-batches go ahead")

    def _order(self, ahead: int) -> Iterator[tuple[str, int]]:
        """A stage's order: `ahead` forwards, then alternately backward and forward, then the remaining backwards."""
        yield from [(FORWARD, number) for number in range(ahead)]
        for number in range(self._count):
            yield BACKWARD, number
            if number + ahead < self._count:
                yield FORWARD, number + ahead


class ScheduleGPipe(_Schedule):
    __doc__ = f"""All micro-batches forward, then all backward: a stage holds what backward reads of all of them.

    {_Schedule.__doc__}
    >>> layer = genesis.nn.Linear(3, 1)
    >>> stage = genesis.distributed.pipelining.PipelineStage(layer, 0, 1)
    >>> schedule = genesis.distributed.pipelining.ScheduleGPipe(stage, 2, genesis.nn.functional.mse_loss)
    >>> schedule.step(genesis.ones(4, 3), target=genesis.zeros(4, 1)).shape, layer.weight.grad.shape
    ((4, 1), (1, 3))
    """

    def _ahead(self, stages: int) -> int:
        return self._count


class Schedule1F1B(_Schedule):
    __doc__ = f"""Forwards and backwards in turn: a stage holds what backward reads of as many micro-batches as stages are left.

    {_Schedule.__doc__}
    >>> stage = genesis.distributed.pipelining.PipelineStage(genesis.nn.Linear(3, 1), 0, 1)
    >>> losses = []
    >>> schedule = genesis.distributed.pipelining.Schedule1F1B(stage, 4, genesis.nn.functional.mse_loss)
    >>> outputs = schedule.step(genesis.ones(4, 3), target=genesis.zeros(4, 1), losses=losses)
    >>> len(losses)
    4
    """

    def _ahead(self, stages: int) -> int:
        return min(self._count, stages)


def _compute() -> None:
    """Run pending work, because another stage waits for it. A single program of a forward and another micro-batch's backward
    would keep the saved values of both."""
    if not is_recording():
        flush_all()


def _alone(value: Any) -> Any:
    """A detached copy of a tensor, which keeps no saved values alive."""
    if not isinstance(value, Tensor):
        return value
    with grad_mode(False):
        return value.detach().clone()


def _joined(outputs: Iterable[Any]) -> Any:
    """The micro-batches' outputs joined; 0-d tensors and other values as a list."""
    first, *_ = listed = [*outputs]
    if isinstance(first, tuple | list):
        return tuple([_joined(each) for each in zip(*listed, strict=True)])
    return call(OPERATIONS["cat"], (listed,)) if isinstance(first, Tensor) and first.ndim else listed
