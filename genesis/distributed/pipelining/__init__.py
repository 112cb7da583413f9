"""Pipeline parallelism: each rank has a stage of the model and computes one micro-batch after the other: PyTorch's API."""

from genesis.distributed.pipelining.schedules import Schedule1F1B, ScheduleGPipe
from genesis.distributed.pipelining.stage import PipelineStage

__all__ = ["PipelineStage", "Schedule1F1B", "ScheduleGPipe"]
