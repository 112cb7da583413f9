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
