"""Saves and loads checkpoints, at several numbers of ranks. Run by `test_sharded_checkpoint.py`: WAY DIRECTORY."""

import os
import signal
import sys

import numpy as np
from tensor_parallel_script import TENSOR, Model, batch, common, loss_of

import genesis
import genesis.distributed as dist
from genesis.distributed import checkpoint as dcp
from genesis.distributed.checkpoint.state_dict import get_model_state_dict, get_state_dict, set_state_dict
from genesis.distributed.tensor import DTensor, Shard, distribute_tensor
from genesis.distributed.tensor.parallel import parallelize_module

STEPS = 3


def trained(model, optimizer, first, last):
    for number in range(first, last):
        optimizer.zero_grad()
        loss_of(model, *batch(number)).backward()
        optimizer.step()


def state_of(model, optimizer, step):
    parameters, state = get_state_dict(model, optimizer)
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    held = distribute_tensor(common((8, 4)).to(genesis.bfloat16), mesh, [Shard(1)])
    rows = dist.fsdp.fully_shard(genesis.nn.Linear(4, 6))  # of which 4 ranks have 2, 2, 2 and 0
    with genesis.no_grad():
        for parameter in rows.parameters():
            parameter.fill_(dist.get_rank() if step >= 0 else -1)
    return {"rows": get_model_state_dict(rows),
            "model": parameters, "optimizer": state, "held": held, "step": step, "lists": [1, ("two", None)]}


def begun():
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    model = parallelize_module(Model(), mesh, TENSOR)
    return model, genesis.optim.AdamW(model.parameters(), lr=0.01)


def main(way, place):
    dist.init_process_group(timeout=30)
    model, optimizer = begun()
    if way == "save":
        trained(model, optimizer, 0, STEPS)
        dcp.save(state_of(model, optimizer, 0), checkpoint_id=place)
        saving = dcp.async_save(state_of(model, optimizer, STEPS), checkpoint_id=place)
        with genesis.no_grad():
            for parameter in model.parameters():  # what was saved is what they held
                parameter.zero_()
        saving.result()
        dist.barrier()
        assert len([name for name in os.listdir(place) if name.endswith(".distcp")]) == dist.get_world_size()
    elif way == "killed":
        if dist.get_rank() == 1:
            os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)
        dcp.save(state_of(model, optimizer, 77), checkpoint_id=place)
    else:
        state = state_of(model, optimizer, -1)
        assert not optimizer.state_dict()["state"]
        dcp.load(state, checkpoint_id=place)
        whole = [k // 2 for k in range(6)]
        part = state["rows"]["weight"]
        assert part.shape == (6, 4) and part.to_local()[:, 0].tolist() == whole[part.start[0] :][: len(part.to_local())]
        assert state["step"] == STEPS and state["lists"] == [1, ("two", None)]
        assert state["held"].full_tensor().tolist() == common((8, 4)).to(genesis.bfloat16).tolist()
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        alone = Model()
        other = genesis.optim.AdamW(alone.parameters(), lr=0.01)
        trained(alone, other, 0, STEPS + 1)
        trained(model, optimizer, STEPS, STEPS + 1)
        for (name, found), wanted in zip(model.state_dict().items(), alone.state_dict().values(), strict=True):
            found = (found.full_tensor() if isinstance(found, DTensor) else found).numpy()
            if "project.bias" not in name:  # keys' biases have gradients of zero: AdamW steps by their rounding
                assert np.abs(found - wanted.numpy()).max() <= 1e-4, name
        mistakes = {"step is a tensor in one": {"step": genesis.ones(1)}, "held is float32[3]": {"held": genesis.ones(3)},
                    "has no absent": {"absent": 1}}
        for said, wrong in mistakes.items():
            try:
                dcp.load(wrong, checkpoint_id=place)
            except (ValueError, KeyError) as problem:
                assert said in str(problem), problem
            else:
                raise AssertionError(said)
    print("done", way)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
