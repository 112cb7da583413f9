"""Pipelines: each rank has a stage of a model, and computes its part of one micro-batch after the other: PyTorch's names."""

from genesis.distributed.pipelining.schedules import Schedule1F1B, ScheduleGPipe
from genesis.distributed.pipelining.stage import PipelineStage

__all__ = ["PipelineStage", "Schedule1F1B", "ScheduleGPipe"]
