"""A job that goes wrong in the way that the command line names. Run by `test_failures.py`."""

import os
import signal
import sys
import time

import genesis
import genesis.distributed as dist


def main(way):
    dist.init_process_group(timeout=60)
    rank, size = dist.get_rank(), dist.get_world_size()
    x = genesis.ones(4) * rank
    dist.all_reduce(x)
    assert x.tolist() == [size * (size - 1) / 2] * 4
    group = dist.new_group(timeout=1) if way == "sleeps" else None  # ranks have begun, and what they call is compiled
    if rank == 1:
        if way == "raises":
            raise ValueError("rank 1 is tired")
        if way.startswith("is killed"):
            os.kill(os.getpid(), signal.SIGKILL)
        if way.startswith("exits"):
            sys.exit(0)
        if way.startswith("forks"):
            if not (child := os.fork()):
                sys.exit(3 if way == "forks one that fails" else [][0])
            print("the child's status:", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        if way == "leaves":
            os._exit(0)
        if way == "fails":
            sys.exit(7)
        if way == "sleeps":
            time.sleep(60)
        if way == "has another shape":
            x = genesis.ones(5)
        if way == "has another list":
            dist.all_reduce_coalesced([genesis.ones(1), genesis.ones(3)])
        if way == "has another dtype":
            x = x.double()
        if way == "has another order":
            dist.broadcast(x, 0)
    elif way == "has another list":
        dist.all_reduce_coalesced([genesis.ones(3), genesis.ones(1)])
    if way == "has other parts":
        sizes = ([1, 2], [1, 2]) if rank == 0 else ([2, 2], [1, 2])  # rank 0 waits for 2 rows of rank 1, which sends 1
        dist.all_to_all_single(genesis.zeros(sum(sizes[0])), genesis.ones(3), *sizes)
    if way.endswith("before its message"):
        dist.recv(x, 1)
    if way == "exits before its exchange":
        print(dist.nn.functional.recv(x, 1).tolist())
    if rank == 0 and way == "is interrupted":
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
    if way == "is asleep" or (rank == 1 and way == "is interrupted"):
        time.sleep(60)
    dist.all_reduce(x, group=group)
    print(x.tolist())
    if rank == 0 and way == "ends later":
        time.sleep(3)


if __name__ == "__main__":
    main(sys.argv[1])
