"""Collectives of a group with the launches between and after them: as one graph on all ranks, or one by one.

In the graph a collective runs on the communication stream once its last operand is ready, and programs wait before they read
its result. NCCL requires a call to be captured on all ranks or on none, and graphs captured together to be launched together.
But ranks have different addresses, and may have different programs, if they read different values. So ranks agree before the
first collective. Each offers its graphs for the addresses of the run, by numbers that are the same on all ranks, and the
collectives that it would capture. They launch a graph that all offer, and do not synchronize again before its end. They capture
one if all would capture the same. Otherwise each starts its launches one by one, and synchronizes before each collective.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial

from genesis.runtime import collective_ir as ir
from genesis.runtime.collectives import MEETING_WORDS, digest
from genesis.runtime.completion import Completion, Fault, UnfinishedError
from genesis.runtime.counters import count
from genesis.runtime.cuda.collective import AwaitingProgram, CollectiveProgram
from genesis.runtime.cuda.gpu import Command, Mark
from genesis.runtime.cuda.memory import GpuMemory
from genesis.runtime.cuda.nccl import GRAPHS, SharedGraph
from genesis.runtime.cuda.program import BOUND_LIMIT, Bound, CudaProgram

Member = CollectiveProgram | AwaitingProgram | CudaProgram
_BITS = 62  # of a word: none is negative
_MASK = (1 << _BITS) - 1
_HELD = GRAPHS // _BITS  # the words that say which graphs a rank offers; then come a digest and its complement
assert _HELD + 2 == MEETING_WORDS


class CommunicatingProgram:
    """Programs in order: a collective, then others of its group, waits, and launches that report no faults.

    `refused` is the reason why they are not a graph, if a driver refused.
    """

    def __init__(self, memory: GpuMemory, members: Sequence[Member]) -> None:
        self._memory, self._members = memory, members
        self._collectives = [member for member in members if isinstance(member, CollectiveProgram)]
        self._programs = [member for member in members if isinstance(member, CudaProgram)]
        self._first = self._collectives[0]
        self._engine = self._first.engine
        self._digest = digest("\n".join([f"{each.what.op} {each.what.said}" for each in self._collectives])) & _MASK
        self._graphs: OrderedDict[tuple[float, ...], list[SharedGraph]] = OrderedDict()  # by the addresses
        self.refused = ""
        self.sources = [source for member in members for source in member.sources]
        # Who waits for the graph waits for all of it.
        others = f" with {len(self._collectives) - 1} more in a graph" if len(self._collectives) > 1 else ""
        self._what = self._first.what._replace(said=f"{self._first.what.said}{others}")

    def run(self, values: Sequence[int | float], completion: Completion | None = None) -> Fault | None:
        """Start all once every rank has reached the first collective; returns the fault, if any.

        After an interrupt or a failed launch the group is unusable.
        """
        try:
            with self._memory.lock:
                bound = [program.bound(values) for program in self._programs]
            flag, value, shared = self._first.meet(self._offered(values, bound))
            if flag:
                return self._first.fault(flag, value)
            graph: SharedGraph | Fault | None = None
            if captured := _number(shared[:_HELD]):
                graph = self._engine.graphs[(captured & -captured).bit_length() - 1]
            elif shared[_HELD:] == self._said():
                graph = self._captured(values, bound)
            if isinstance(graph, SharedGraph):
                self._launch(graph, completion)
                return None
            return graph or self._run_members(values, completion)
        except BaseException:
            self._first.group.close(ir.UNUSABLE)
            raise

    def seconds(self) -> list[float]:
        """The seconds of each launch and collective in the last run that started them one by one, as the next run will."""
        return [second for member in self._members for second in member.seconds()]

    def _offered(self, values: Sequence[int | float], bound: Sequence[Bound]) -> list[int]:
        """The words for the other ranks: this rank's graphs for these addresses, and what it would capture."""
        if self.refused or any([program.is_watched for program in self._programs]):
            return [0] * MEETING_WORDS
        key = self._programs[0].addresses(values)
        graphs = self._engine.graphs
        captured = sum(1 << graph.number for graph in self._graphs.get(key, ()) if graphs.get(graph.number) is graph)
        would_capture = all(each.has_run for each in bound)
        return [*[captured >> _BITS * word & _MASK for word in range(_HELD)], *(self._said() if would_capture else (0, 0))]

    def _said(self) -> list[int]:
        """A digest and its complement: both survive a bitwise reduction over ranks only if all digests are equal."""
        return [self._digest, ~self._digest & _MASK]

    def _captured(self, values: Sequence[int | float], bound: Sequence[Bound]) -> SharedGraph | Fault | None:
        """A graph of all ranks at these addresses; None if a rank's driver refuses."""
        number, command = self._engine.next_graph(), None
        with self._memory.lock:
            self._memory.await_under_way()  # no graph waits for what is outside
            try:
                command = self._memory.gpu.captured(self._commands(values, bound))
            except RuntimeError as problem:
                count("graphs_refused")
                self.refused, self._engine.problem = str(problem), ""
        flag, value, shared = self._first.meet([command is not None] * MEETING_WORDS)
        if flag:
            return self._first.fault(flag, value)
        if command is None or not shared[0]:
            self.refused = self.refused or "another rank's driver refused the graph"
            return None
        count("graphs_captured")
        key = self._programs[0].addresses(values)
        graph = self._engine.graphs[number] = SharedGraph(number, command, bound)
        captured = [each for each in self._graphs.pop(key, ()) if self._engine.graphs.get(each.number) is each]
        self._graphs[key] = [*captured, graph]
        if len(self._graphs) > BOUND_LIMIT:
            self._graphs.popitem(last=False)
        return graph

    def _commands(self, values: Sequence[int | float], bound: Sequence[Bound]) -> list[Command]:
        """The commands to capture from the programs' stream. Collectives fork from it and have joined it at the end."""
        gpu, under_way, left = self._memory.gpu, dict[object, Mark](), [*bound]
        commands: list[Command] = []
        for member in self._members:
            if isinstance(member, CudaProgram):
                commands += left.pop(0).commands
            elif isinstance(member, CollectiveProgram):
                commands.append(partial(member.capture, values, under_way))
            else:
                commands.append(partial(_join, gpu.hold, under_way, member.begun))
        return [*commands, *[partial(_join, gpu.hold, under_way, each) for each in self._collectives]]

    def _launch(self, graph: SharedGraph, completion: Completion | None) -> None:
        memory = self._memory
        with memory.lock:
            memory.await_under_way()  # what the communicator has begun before comes before
            count("native_calls")
            memory.gpu.submit([graph.command], int if completion is None else completion.note)
            self._engine.latest = self._what, memory.gpu.mark()

    def _run_members(self, values: Sequence[int | float], completion: Completion | None) -> Fault | None:
        """Start them one by one; all ranks have reached the first."""
        for member in self._members:
            if member is self._first:
                fault = self._first.begin(values)
            elif member is self._members[-1]:
                return member.run(values, completion)
            else:
                try:
                    fault = member.run(values)
                except UnfinishedError as problem:  # inputs are written over by the last alone
                    raise RuntimeError(str(problem)) from problem
            if fault is not None:
                return fault
        return None


def _join(hold: Callable[[Mark], None], under_way: dict[object, Mark], begun: object) -> None:
    if begun in under_way:
        hold(under_way.pop(begun))


def _number(words: Sequence[int]) -> int:
    return sum(word << _BITS * digit for digit, word in enumerate(words))
