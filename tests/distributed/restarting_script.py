"""Counts to 6, a checkpoint at a time; rank 1 fails at 3, and at 5 when it begins anew. Run by `test_sharded_checkpoint.py`."""

import os
import sys

import genesis
import genesis.distributed as dist
from genesis.distributed import checkpoint

FAILS_AT = {"0": 3, "1": 5}


def main():
    dist.init_process_group(timeout=20)
    restart, place = os.environ["GENESIS_RESTART"], sys.argv[1]
    state = {"total": genesis.zeros(2), "step": 0}
    if restart != "0":
        checkpoint.load(state, checkpoint_id=place)
        print(f"restart {restart} goes on at {state['step']}")
    for step in range(state["step"], 6):
        if dist.get_rank() == 1 and FAILS_AT.get(restart) == step:
            raise ValueError(f"rank 1 fails at {step}")
        one = genesis.ones(2)
        dist.all_reduce(one)
        state["total"] += one
        state["step"] = step + 1
        checkpoint.save(state, checkpoint_id=place)
    print(f"total {state['total'].tolist()}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
