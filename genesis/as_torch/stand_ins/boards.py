"""`torch.utils.tensorboard`, whose package is imported when its writer is asked for."""

from genesis.ir.lazy_imports import LazyNames

__getattr__ = LazyNames("genesis.as_torch.stand_ins.boards", {"genesis.utils.tensorboard": "SummaryWriter"})
