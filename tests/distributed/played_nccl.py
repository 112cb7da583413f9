"""NCCL as the host plays it: functions of C's calling convention, which move what lies in the simulated GPU's memory by MPI.

Its communicators do not block: the first call on each is in progress until somebody has asked twice. What it moves is there for
whoever waits for the stream that it was begun on; who does not wait finds garbage.
"""

import ctypes
from functools import partial

import ml_dtypes
import numpy as np
from mpi4py import MPI

from genesis.runtime.cuda import memory_of
from genesis.runtime.cuda.nccl import SIGNATURES, TEXTS

TYPES = [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32, np.float64, ml_dtypes.bfloat16]
REDUCTIONS = [np.add, np.multiply, np.maximum, np.minimum]
COUNTED = {"AllReduce": 3, "Reduce": 4, "ReduceScatter": 3, "Broadcast": 3, "AllGather": 2, "Send": 3, "Recv": 3}
INVALID, REMOTE, IN_PROGRESS = 4, 6, 7
GARBAGE = 0xA5


class PlayedNccl:
    """What `ctypes.CDLL("libnccl.so.2")` would be.

    `wrongs` lists what was done against NCCL's rules, or without waiting. Unless it `comes` no rank is at a new communicator.
    `calls` lists what was called, with counts, types and what follows, but no addresses. The next collectives return
    `statuses`, as far as these go; `state` is the asynchronous error. While it `hangs` nothing that is begun ends, until it
    is aborted.
    """

    def __init__(self):
        self.calls, self.statuses, self.state, self.hangs = [], [], 0, False
        self.captures, self.numbers = 0, {}  # of all communicators, and of each
        self.overlapped = 0  # results that programs did not wait for at once
        self.group, self.comms, self.made = None, {}, 0
        self.wrongs, self.comes, self.known = [], True, set()
        self.waiting = {}  # handle -> how often was asked, and what happens then
        self.texts = {"GetErrorString": ctypes.create_string_buffer(b"unhandled error"),
                      "GetLastError": ctypes.create_string_buffer(b"ring 0 has no channel")}
        for name, arguments in SIGNATURES.items():
            kind = ctypes.c_void_p if name in TEXTS else ctypes.c_int
            setattr(self, f"nccl{name}", ctypes.CFUNCTYPE(kind, *arguments)(self.played(name)))

    def played(self, name):
        if name in TEXTS:
            return lambda *arguments: ctypes.addressof(self.texts[name])
        play = getattr(self, name, None) or (lambda *arguments: self.begin(name, arguments))

        def checked(*arguments):
            if self.waiting and name not in ("CommGetAsyncError", "CommAbort", "GetUniqueId"):
                self.wrongs.append(f"{name} while another call is in progress")
            try:
                return play(*arguments)
            except Exception as problem:  # ctypes would go on with a status of 0
                self.wrongs.append(f"{name}: {problem!r}")
                raise
        return checked

    def taken(self):
        """What was called since."""
        found, self.calls = self.calls, []
        return found

    def GetUniqueId(self, into):
        self.made += 1
        into.contents.internal[:2] = MPI.COMM_WORLD.rank, self.made
        return 0

    def CommInitRankConfig(self, into, size, ident, rank, config):
        known = config.contents
        if (known.size, known.magic, known.blocking) != (48, 0xCAFEBEEF, 0):
            return INVALID
        self.made_handles = getattr(self, "made_handles", 4095) + 1
        into[0] = handle = self.made_handles
        ident = bytearray(ident)[:2]
        self.waiting[handle] = [0, lambda: self.join(handle, size, ident, rank)]
        self.calls.append(f"CommInitRankConfig {rank} of {size}")
        return IN_PROGRESS

    def join(self, handle, size, ident, rank):
        root, number = ident
        world = MPI.COMM_WORLD
        if world.rank == root:
            members = [root] + [world.recv(source=MPI.ANY_SOURCE, tag=900 + number) for _ in range(size - 1)]
            for other in members[1:]:
                world.send(members, other, 950 + number)
        else:
            world.send(world.rank, root, 900 + number)
            members = world.recv(source=root, tag=950 + number)
        comm = world.Create_group(world.group.Incl(sorted(members)), number)
        assert (comm.rank, comm.size) == (rank, size)
        self.comms[handle] = comm

    def CommAbort(self, handle):
        self.calls.append("CommAbort")
        self.hangs, self.state = False, 0
        self.comms.pop(handle, None)
        self.waiting.pop(handle, None)
        return 0

    def CommFinalize(self, handle):
        self.calls.append("CommFinalize")
        self.waiting[handle] = [0, lambda: None]
        return IN_PROGRESS

    def CommDestroy(self, handle):
        self.calls.append("CommDestroy")
        del self.comms[handle]
        return 0

    def CommGetAsyncError(self, handle, into):
        into[0] = self.state
        if handle in self.waiting:
            asked, then = self.waiting[handle]
            self.waiting[handle][0] += 1
            if asked and (self.comes or handle in self.comms):
                del self.waiting[handle]
                then()
            else:
                into[0] = IN_PROGRESS
        return 0

    def GroupStart(self):
        assert self.group is None
        self.group = []
        self.calls.append("GroupStart")
        return 0

    def GroupEnd(self):
        begun, self.group = self.group, None
        self.calls.append("GroupEnd")
        return self.submitted(begun)

    def begin(self, name, arguments):
        *known, handle, stream = arguments
        addresses, rest = known[: len(known) - COUNTED[name]], known[len(known) - COUNTED[name] :]
        kind = np.dtype(TYPES[rest[1]]).name
        self.calls.append(" ".join([name, str(rest[0]), kind, *map(str, rest[2:]), f"on {stream or 0}"]))
        status = self.statuses.pop(0) if self.statuses else 0
        if status:
            return status
        gpu = memory_of(0).gpu
        if stream != gpu.communication_stream:
            self.wrongs.append(f"{name} on stream {stream}, that of programs")
        if gpu.held[1] != gpu.submitted[0]:
            self.wrongs.append(f"{name} does not wait for programs: for {gpu.held[1]} of {gpu.submitted[0]} commands")
        if gpu.capture is not None and not gpu.capture.forked:
            self.wrongs.append(f"{name}: its stream is not part of the graph that is captured")
        call = name, addresses, rest, self.comms[handle], handle
        if self.group is None:
            return self.submitted([call])
        self.group.append(call)
        return 0

    def submitted(self, begun):
        """Do it. The first time on a communicator, and in a capture, it is in progress first, and not in the stream yet."""
        handle = begun[0][-1]
        gpu = memory_of(0).gpu
        if gpu.capture is not None:
            capture, self.captures = gpu.capture, self.captures + 1
            number = self.numbers[handle] = self.numbers.get(handle, 0) + 1
            capture.open += 1
            gpu.submitted[1] += 1
            effect = partial(self.replayed, begun, number)
            self.waiting[handle] = [0, lambda: capture.effects.append(effect)]
            return IN_PROGRESS
        if handle in self.known or self.hangs:
            return self.done(begun)
        self.known.add(handle)
        self.waiting[handle] = [0, lambda: self.done(begun)]
        return IN_PROGRESS

    def replayed(self, begun, number, marks):
        """Do what a graph holds; ranks have to launch graphs that they captured together."""
        self.calls.append("replay " + ", ".join(f"{name} {rest[0]}" for name, _, rest, *_ in begun))
        self.done(begun, number)

    def done(self, begun, number=None):
        """Do what was begun, all sends first; nothing where it hangs."""
        if self.hangs:
            return 0
        sent = [comm.Isend(memory(address, count * np.dtype(TYPES[kind]).itemsize, np.uint8).copy(), peer, 77)
                for name, (address, *_), (count, kind, *peers), comm, _ in begun if name == "Send" for peer in peers]
        for name, addresses, rest, comm, _ in begun:
            count, kind, *more = rest
            dtype = TYPES[kind]
            if name == "Recv":
                came = np.empty(count * np.dtype(dtype).itemsize, np.uint8)
                comm.Recv(came, more[0], 77)
                self.give(addresses[0], came, None)
            elif name == "Send":
                self.give(0, np.empty(0, np.uint8), memory(addresses[0], count * np.dtype(dtype).itemsize, np.uint8))
            else:
                given = memory(addresses[0], count * (comm.size if name == "ReduceScatter" else 1), dtype)
                known = comm.allgather(((name, *rest, number), given.copy()))
                if len({said for said, _ in known}) > 1:
                    self.wrongs.append(f"ranks do other things: {[said for said, _ in known]}")
                    return INVALID
                found = self.combined(name, more, comm, [values for _, values in known])
                self.give(addresses[1], found if name != "Reduce" or comm.rank == more[1] else found[:0], given)
        MPI.Request.Waitall(sent)
        return 0

    def give(self, address, found, read):
        """Have a result be there for whoever waits for it. What was read stays as it is until then."""
        found = np.ascontiguousarray(found).view(np.uint8)
        given = memory(address, len(found), np.uint8)
        overlaps = read is not None and np.shares_memory(given, read)
        before = None if read is None or overlaps else read.copy()
        given[:] = GARBAGE
        gpu = memory_of(0).gpu
        programs = gpu.submitted[0]

        def come():
            self.overlapped += gpu.submitted[0] > programs
            if before is not None and before.tobytes() != read.tobytes():
                self.wrongs.append(f"what is at {address:#x} was written over while it was sent")
            given[:] = found

        gpu.defer(come)

    @staticmethod
    def combined(name, more, comm, given):
        if name == "AllGather":
            found = np.concatenate(given)
        elif name == "Broadcast":
            found = given[more[0]]
        else:
            found = given[0]
            for values in given[1:]:
                found = REDUCTIONS[more[0]](found, values)
            if name == "ReduceScatter":
                found = np.split(found, comm.size)[comm.rank]
        return found


def memory(address, count, dtype):
    """Elements in memory of the host."""
    if not count:
        return np.empty(0, dtype)
    return np.frombuffer((ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(address), dtype)
