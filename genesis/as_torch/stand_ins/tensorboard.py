"""`torch.utils.tensorboard`; the package is imported when its writer is used."""

from genesis.runtime.deferred import LazyNames

__getattr__ = LazyNames("genesis.as_torch.stand_ins.tensorboard", {"genesis.utils.tensorboard": "SummaryWriter"})
