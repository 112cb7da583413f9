"""Processes that are started under the door are under it too."""

from tests.as_torch.test_door import run


def test_processes_that_begin_anew_find_the_script_and_torch(tmp_path):
    printed = run(
        """
        import torch
        import torch.multiprocessing as mp

        class Net(torch.nn.Module):
            def forward(self, x):
                return x * 2

        def work(i, x, net, queue):
            queue.put((i, net(x * i).sum().item(), torch.float32 == x.dtype))

        def fails(i):
            raise ValueError("in the process")

        if __name__ == "__main__":
            queue = mp.get_context("spawn").SimpleQueue()
            mp.spawn(work, args=(torch.ones(3), Net(), queue))
            print(queue.get())
            try:
                mp.spawn(fails)
            except mp.ProcessRaisedException as problem:
                print("ValueError: in the process" in str(problem), problem.error_index)
        """, tmp_path=tmp_path)
    assert printed.splitlines() == ["(0, 0.0, True)", "True 0"]


def test_python_processes_find_torch_too(tmp_path):
    printed = run(
        """
        import subprocess, sys
        import torch

        text = "import torch.nn, torch, genesis; print(torch.Tensor is genesis.Tensor, torch.nn.Linear is genesis.nn.Linear)"
        print(subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True, cwd="/").stdout, end="")
        """, tmp_path=tmp_path)
    assert printed.split() == ["True", "True"]


def test_modules_of_torch_distributed_are_those_of_genesis(tmp_path):
    printed = run(
        """
        import genesis.distributed as dist
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.state_dict import get_state_dict
        from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        from torch.distributed.optim import ZeroRedundancyOptimizer
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
        from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
        from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

        parallel = dist.tensor.parallel
        print([mine is theirs for mine, theirs in (
            (dcp.save, dist.checkpoint.save), (dcp.load, dist.checkpoint.load), (dcp.async_save, dist.checkpoint.async_save),
            (get_state_dict, dist.checkpoint.state_dict.get_state_dict), (DeviceMesh, dist.DeviceMesh),
            (init_device_mesh, dist.init_device_mesh), (fully_shard, dist.fsdp.fully_shard),
            (MixedPrecisionPolicy, dist.fsdp.MixedPrecisionPolicy), (DTensor, dist.tensor.DTensor),
            (ZeroRedundancyOptimizer, dist.optim.ZeroRedundancyOptimizer), (Shard, dist.tensor.Shard),
            (Replicate, dist.tensor.Replicate), (distribute_tensor, dist.tensor.distribute_tensor),
            (PipelineStage, dist.pipelining.PipelineStage), (Schedule1F1B, dist.pipelining.Schedule1F1B),
            (ScheduleGPipe, dist.pipelining.ScheduleGPipe), (ColwiseParallel, parallel.ColwiseParallel),
            (parallelize_module, parallel.parallelize_module),
        ) if mine is not theirs])
        """, tmp_path=tmp_path)
    assert printed.strip() == "[]"
