"""PyTorch's APIs beyond arrays and networks, as far as they apply here: a file has the name of the module that it serves.

`torch.utils.weak` is in `weak`. Names of `torch` itself are in `torch` and, those of tensors' types and of the process's state,
in `tensor_types` and `torch_state`; values that stand for settings without effect in `settings`.
"""

from genesis.as_torch.stand_ins import (
    _VF, _contextlib, _pytree, _pytree_nodes, _utils, accelerator, amp, aten, autograd, backends, benchmark,
    benchmark_compare, checkpoint, compiler, cpu, cuda, datapipes, distributed, distributed_run, eval_frame, export,
    flop_counter, foreach, hub, library, masked, multiprocessing, nn, optim, overrides, serialization, tensor_types,
    tensorboard, torch, torch_state, torchvision, weak,
)
