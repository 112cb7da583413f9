"""NCCL as the host plays it: functions of C's calling convention, which move what lies in the simulated GPU's memory by MPI."""

import ctypes

import ml_dtypes
import numpy as np
from mpi4py import MPI

from genesis.runtime.cuda.nccl import SIGNATURES, TEXTS

TYPES = [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32, np.float64, ml_dtypes.bfloat16]
REDUCTIONS = [np.add, np.multiply, np.maximum, np.minimum]
COUNTED = {"AllReduce": 3, "Reduce": 4, "ReduceScatter": 3, "Broadcast": 3, "AllGather": 2, "Send": 3, "Recv": 3}
INVALID, REMOTE = 4, 6


class PlayedNccl:
    """What `ctypes.CDLL("libnccl.so.2")` would be.

    `calls` lists what was called, with counts, types and what follows, but no addresses. The next collectives return
    `statuses`, as far as these go; `state` is the asynchronous error. While it `hangs` nothing that is begun ends, until it
    is aborted.
    """

    def __init__(self):
        self.calls, self.statuses, self.state, self.hangs = [], [], 0, False
        self.group, self.comms, self.made = None, {}, 0
        self.texts = {"GetErrorString": ctypes.create_string_buffer(b"unhandled error"),
                      "GetLastError": ctypes.create_string_buffer(b"ring 0 has no channel")}
        for name, arguments in SIGNATURES.items():
            kind = ctypes.c_void_p if name in TEXTS else ctypes.c_int
            setattr(self, f"nccl{name}", ctypes.CFUNCTYPE(kind, *arguments)(self.played(name)))

    def played(self, name):
        if name in TEXTS:
            return lambda *arguments: ctypes.addressof(self.texts[name])
        return getattr(self, name, lambda *arguments: self.begin(name, arguments))

    def taken(self):
        """What was called since."""
        found, self.calls = self.calls, []
        return found

    def GetUniqueId(self, into):
        self.made += 1
        into.contents.internal[:2] = MPI.COMM_WORLD.rank, self.made
        return 0

    def CommInitRank(self, into, size, ident, rank):
        root, number, *_ = ident.internal
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
        into[0] = 4096 + len(self.comms)
        self.comms[4096 + len(self.comms)] = comm
        self.calls.append(f"CommInitRank {rank} of {size}")
        return 0

    def CommAbort(self, handle):
        self.calls.append("CommAbort")
        self.hangs, self.state = False, 0
        del self.comms[handle]
        return 0

    def CommDestroy(self, handle):
        self.calls.append("CommDestroy")
        del self.comms[handle]
        return 0

    def CommGetAsyncError(self, handle, into):
        into[0] = self.state
        return 0

    def GroupStart(self):
        assert self.group is None
        self.group = []
        self.calls.append("GroupStart")
        return 0

    def GroupEnd(self):
        begun, self.group = self.group, None
        self.calls.append("GroupEnd")
        return self.done(begun)

    def begin(self, name, arguments):
        *known, handle, stream = arguments
        addresses, rest = known[: len(known) - COUNTED[name]], known[len(known) - COUNTED[name] :]
        kind = np.dtype(TYPES[rest[1]]).name
        self.calls.append(" ".join([name, str(rest[0]), kind, *map(str, rest[2:]), f"on {stream or 0}"]))
        status = self.statuses.pop(0) if self.statuses else 0
        if status:
            return status
        call = name, addresses, rest, self.comms[handle]
        if self.group is None:
            return self.done([call])
        self.group.append(call)
        return 0

    def done(self, begun):
        """Do what was begun, all sends first; nothing where it hangs."""
        if self.hangs:
            return 0
        sent = [comm.Isend(memory(address, count * np.dtype(TYPES[kind]).itemsize, np.uint8), peer, 77)
                for name, (address, *_), (count, kind, *peers), comm in begun if name == "Send" for peer in peers]
        for name, addresses, rest, comm in begun:
            count, kind, *more = rest
            dtype = TYPES[kind]
            if name == "Recv":
                comm.Recv(memory(addresses[0], count * np.dtype(dtype).itemsize, np.uint8), more[0], 77)
            elif name != "Send":
                given = memory(addresses[0], count * (comm.size if name == "ReduceScatter" else 1), dtype)
                known = comm.allgather(((name, *rest), given.copy()))
                if len({said for said, _ in known}) > 1:
                    return INVALID
                self.combine(name, addresses[1], more, comm, [values for _, values in known])
        MPI.Request.Waitall(sent)
        return 0

    @staticmethod
    def combine(name, address, more, comm, given):
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
        if name != "Reduce" or comm.rank == more[1]:
            memory(address, len(found), found.dtype)[:] = found


def memory(address, count, dtype):
    """Elements in memory of the host."""
    return np.frombuffer((ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(address), dtype)
