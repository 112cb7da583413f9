"""A server of PMI, version 1, from which MPICH gets its ranks' addresses, for ranks that met at an address. See `rendezvous`.

`python process_manager.py LISTENER CONNECTION RANKS` serves the sockets with these descriptors, one of rank 0 and one for the
other ranks, until the last rank has gone. It starts in milliseconds, because it imports nothing of the library. A line is
`cmd=NAME KEY=VALUE ..`. A rank's first line is "hello", not of PMI; it is answered when all have arrived, and then MPI speaks.
"""

from __future__ import annotations

import itertools
import selectors
import socket
import sys

_LONGEST = {"kvsname_max": 256, "keylen_max": 256, "vallen_max": 4096}
_MOST = 1 << 16  # bytes of a line
_PLAIN = {  # questions that have one answer
    "init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
    "get_maxes": " ".join(["cmd=maxes rc=0", *[f"{name}={most}" for name, most in _LONGEST.items()]]),
    "get_appnum": "cmd=appnum rc=0 appnum=0",
    "get_my_kvsname": "cmd=my_kvsname rc=0 kvsname=genesis",
    "finalize": "cmd=finalize_ack rc=0",
}


class Server:
    """Ranks by connection, and the key-value store through which they exchange addresses."""

    def __init__(self, listener: socket.socket, first: socket.socket, size: int) -> None:
        self._listener, self._first, self._size = listener, first, size
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._read: dict[socket.socket, bytes] = {}  # what has come of a line that is not whole yet
        self._machines: dict[int, str] = {}
        self._ranks: dict[socket.socket, int] = {}
        self._values: dict[str, str] = {}
        self._waiting: list[socket.socket] = []  # at the barrier
        self._have_met = False
        self._take(first)

    def serve(self) -> None:
        """Serve until all ranks have gone, or rank 0 has before all have arrived."""
        while self._ranks if self._have_met else self._first in self._read:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    self._take(self._listener.accept()[0])
                else:
                    self._hear(key.fileobj)  # type: ignore[arg-type]

    def _take(self, connection: socket.socket) -> None:
        self._read[connection] = b""
        self._selector.register(connection, selectors.EVENT_READ)

    def _hear(self, connection: socket.socket) -> None:
        if connection not in self._read:  # it was given up since it was found to have something to say
            return
        try:
            came = connection.recv(_MOST)
        except OSError:
            came = b""
        *lines, rest = (self._read[connection] + came).split(b"\n")
        self._read[connection] = rest
        if not came or len(rest) > _MOST:
            self._forget(connection)
            return
        for line in lines:
            said = dict(word.split("=", 1) for word in line.decode(errors="replace").split() if "=" in word)
            if connection in self._ranks:
                self._answer(connection, said)
            elif not self._is_welcome(connection, said):
                self._forget(connection)
                return

    def _forget(self, connection: socket.socket) -> None:
        if connection not in self._read:
            return
        self._selector.unregister(connection)
        connection.close()
        del self._read[connection]
        rank = self._ranks.pop(connection, None)
        if rank is not None and not self._have_met:
            del self._machines[rank]  # another one may be started
        self._give_up()

    def _give_up(self) -> None:
        """Disconnect the ranks at the barrier when another has gone: their MPI then ends them."""
        while self._waiting and len(self._ranks) < self._size:
            self._forget(self._waiting.pop())

    def _answer(self, connection: socket.socket, said: dict[str, str]) -> None:
        match said.get("cmd"):
            case "get_universe_size":
                _say(connection, f"cmd=universe_size rc=0 size={self._size}")
            case "put":
                self._values[said["key"]] = said["value"]
                _say(connection, "cmd=put_result rc=0 msg=success")
            case "get" if said["key"] in self._values:
                _say(connection, f"cmd=get_result rc=0 msg=success value={self._values[said['key']]}")
            case "get":
                _say(connection, "cmd=get_result rc=-1 msg=key_not_found value=unknown")
            case "barrier_in":
                self._waiting.append(connection)
                self._give_up()
                if len(self._waiting) == self._size:
                    for each in self._waiting:
                        _say(each, "cmd=barrier_out rc=0")
                    self._waiting = []
            case question:
                _say(connection, _PLAIN.get(question or "", f"cmd={question} rc=-1 msg=unknown"))

    def _is_welcome(self, connection: socket.socket, said: dict[str, str]) -> bool:
        """Whether one that is no rank yet has said which one it is; the last one's word is the sign for all to begin."""
        if not all(said.get(name, "").isdecimal() for name in ("rank", "size")):
            return False
        rank, size = int(said["rank"]), int(said["size"])
        if size != self._size:
            _say(connection, f"rank 0 expects {self._size} ranks, rank {rank} expects {size}")
            return False
        if rank in self._machines or rank >= size:
            _say(connection, f"another process is rank {rank} there")
            return False
        self._ranks[connection], self._machines[rank] = rank, said.get("machine", "")
        if len(self._machines) == self._size:
            self._have_met = True
            self._values["PMI_process_mapping"] = mapping([self._machines[rank] for rank in range(self._size)])
            for each in self._ranks:
                _say(each, "welcome")
        return True


def mapping(machines: list[str]) -> str:
    """PMI's description of the ranks' machines: blocks of (first machine, machines, ranks of each), in rank order.

    >>> mapping(["a", "a", "b"])
    '(vector,(0,1,2),(1,1,1))'
    """
    numbers = {machine: number for number, machine in enumerate(dict.fromkeys(machines))}
    blocks = [(numbers[machine], len(list(ranks))) for machine, ranks in itertools.groupby(machines)]
    return f"(vector,{','.join(f'({number},1,{count})' for number, count in blocks)})"


def _say(connection: socket.socket, line: str) -> None:
    try:
        connection.sendall(line.encode() + b"\n")
    except OSError:  # it has gone: reading will find that
        return


if __name__ == "__main__":
    listener, connection = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    Server(listener, connection, int(sys.argv[3])).serve()
