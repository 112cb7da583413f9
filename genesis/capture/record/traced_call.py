"""Recording a call: the function runs once under a recorder and a watch."""

from __future__ import annotations

from typing import Any, NamedTuple

from genesis.capture.guards.entry_check import leaves_check
from genesis.capture.record.arguments import Arguments
from genesis.capture.record.handlers import handlers_in_other_traces
from genesis.capture.record.reads import LOOK
from genesis.capture.record.recorder import Recorder
from genesis.capture.record.records import Mode, Positional
from genesis.capture.record.results import Results
from genesis.capture.record.watch import Watch
from genesis.capture.replay.entry import Entry
from genesis.execution.flush import flush_all
from genesis.ir.annotations import AnyFunction, Options
from genesis.ir.dtypes import get_default_dtype
from genesis.runtime.determinism import planned_threads
from genesis.runtime.devices import CPU, get_current_gpu, get_default_device, seen_devices
from genesis.runtime.number_of_threads import get_num_threads
from genesis.runtime.references import collector_paused
from genesis.tensor.handle import Tensor
from genesis.tensor.traced_number import number_given, plain
from genesis.tracing.state import thread_state


def modes() -> Mode:
    """The modes of a call: gradients, autocast, default dtype and devices, threads, planned threads."""
    state = thread_state
    devices = (get_default_device(), get_current_gpu()) if seen_devices else _CPU_ALONE
    return state.grad_enabled, state.autocast, get_default_dtype(), devices, get_num_threads(), planned_threads()


_CPU_ALONE = CPU, 0  # the defaults until another device is used


class RecordedCall(NamedTuple):
    """A recorded call: its result, its recorder, and its entry."""

    result: Any
    recorder: Recorder
    made: Entry

    @property
    def entry(self) -> Entry | None:
        """The entry, if the call can be replayed."""
        return None if self.recorder.refusals else self.made


def record(
    function: AnyFunction, args: Positional, kwargs: Options, dynamic: bool = False, fullgraph: bool = False,
    returns_items: bool = False, undoable: bool = False, compares: bool = True,
) -> RecordedCall:
    """Call the function and record it.

    `dynamic`: numbers may be data. `undoable`: keep what is needed to undo the call. `compares`: values that Python reads
    may be guards.
    """
    before = modes()
    recorder = Recorder(fullgraph, returns_items, undoable, compares)
    # The collector is paused, as destructors that it runs would be recorded as part of the function.
    with collector_paused(), handlers_in_other_traces(), recorder, recorder:  # entered twice: see its exit
        arguments = recorder.arguments = Arguments(recorder, args, kwargs, dynamic)
        for j, leaf in enumerate([*arguments.leaves]):
            if isinstance(leaf, Tensor):
                recorder.argument(leaf, j)
        recorder.guards.enter(function, getattr(function, "__name__", "the function"))
        watch = Watch(recorder)
        try:
            try:
                arguments.place()
                with watch:
                    result = function(*arguments.args, **arguments.kwargs)
            finally:
                watch.__exit__()  # again, as an interrupt may have cut the context's exit short
                arguments.restore()
            flush_all()
            if len({program.device for program in recorder.programs}) > 1:
                recorder.refuse("it computes on several devices")
        except BaseException:
            recorder.take_back_steps()
            raise
        recorder.note_late_writes()
        if modes() != before:
            recorder.refuse("it leaves another mode (of gradients, autocast, dtype or threads) behind")
        _compare(recorder, arguments, args, kwargs)
        results = Results(recorder, result, {*arguments.containers})
        reads = recorder.reads()
        if results.gradients and any(read.position == len(recorder.programs) - 1 for read in reads):
            recorder.refuse(f"{LOOK} after gradients were left")
        entry = Entry(recorder, arguments, results, before, reads)
        returned = [plain(result, number_given) if recorder.numbers else result]
        del result
        if arguments.put_back():
            recorder.refuse("a number that may change from call to call is stored")
    return RecordedCall(returned.pop(), recorder, entry)


def _compare(recorder: Recorder, arguments: Arguments, args: Positional, kwargs: Options) -> None:
    """Refuse a call that changes what it reads, as the next one would read something else."""
    guards = recorder.guards
    changed = guards.failing()
    if changed is not None:
        label = guards.labels[changed] if changed >= 0 else "what it reads"
        recorder.refuse(f"it changes {label} itself", passes=changed in guards.memories)
        recorder.fills = guards.has_filled()
    leaves = leaves_check(recorder, arguments)(args, kwargs)
    if isinstance(leaves, int) or any(a is not b for a, b in zip(leaves, arguments.leaves, strict=True)):
        recorder.refuse("it changes the containers of its arguments")
    for tensor, state in recorder.states.items():
        state_now = type(state).of(tensor) if tensor._array.memory is not None else None
        if state_now is None or state_now.base is not state.base or (
            (state_now.requires_grad, state_now.hooks, state_now.extras) != (state.requires_grad, state.hooks, state.extras)
        ):
            recorder.refuse("it changes requires_grad, the hooks or the storage of a tensor that was there before")
        elif state.base is None and tensor._array is not state.array and id(tensor._array) not in recorder.outputs:
            recorder.refuse("it puts the memory of one tensor into another")
