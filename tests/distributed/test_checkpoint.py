"""Checkpoints: written by four ranks, read by two and by one; a save that is killed leaves the one before."""

import pytest
from ranks import needs_mpi, run_ranks

import genesis
import genesis.distributed as dist
from genesis.distributed import checkpoint


@needs_mpi
def test_four_ranks_save_and_others_go_on(tmp_path):
    for ranks, way in ((4, "save"), (2, "killed"), (2, "load"), (1, "load")):
        ended = run_ranks(ranks, "checkpoint_script.py", way, str(tmp_path), deadline=150)
        assert (ended.status == 0) is (way != "killed"), (ranks, way, ended.printed)
        assert ("done" in ended.printed) is (way != "killed"), (ranks, way, ended.printed)


def test_what_is_no_checkpoint(tmp_path):
    dist.init_process_group()
    try:
        with pytest.raises(FileNotFoundError, match="there is none in"):
            checkpoint.load({"x": genesis.ones(1)}, checkpoint_id=tmp_path)
        with pytest.raises(TypeError, match="x is a object; want tensors"):
            checkpoint.save({"x": object()}, checkpoint_id=tmp_path)
        with pytest.raises(ValueError, match=r"two values have the path 'a\.b'"):
            checkpoint.save({"a": {"b": 1}, "a.b": 2}, checkpoint_id=tmp_path)
    finally:
        dist.destroy_process_group()
