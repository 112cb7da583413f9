"""SummaryWriter: what TensorBoard's own reader finds in the files, beside what PyTorch's class writes."""

import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
import torch

import genesis
from genesis import nn

pytest.importorskip("tensorboard")
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter as TorchWriter

from genesis.utils.tensorboard import SummaryWriter


def read(folder):
    found = EventAccumulator(str(folder), size_guidance={"histograms": 0, "scalars": 0, "images": 0, "tensors": 0})
    found.Reload()
    return found


def test_scalars_and_histograms_are_those_of_pytorchs_writer(tmp_path):
    values = np.random.default_rng(0).standard_normal(1000).astype(np.float32) * 3
    for folder, writer, tensor in (("ours", SummaryWriter, genesis.tensor), ("theirs", TorchWriter, torch.tensor)):
        with writer(str(tmp_path / folder)) as board:
            board.add_scalar("loss", tensor(0.25), 3, walltime=7.0)
            board.add_scalar("loss", 0.125, 4, walltime=8.0)
            board.add_scalar("new", tensor([2.0]), 1, walltime=9.0, new_style=True)
            board.add_histogram("weights", tensor(values), 2, walltime=1.0)
            board.add_histogram("ten", tensor(values), 2, bins=[-10.0, 0.0, 5.0, 50.0], walltime=1.0)
            board.add_text("note", "*so*", 1, walltime=2.0)
    ours, theirs = read(tmp_path / "ours"), read(tmp_path / "theirs")
    assert ours.Scalars("loss") == theirs.Scalars("loss") and [s.value for s in ours.Scalars("loss")] == [0.25, 0.125]
    for tag in ("weights", "ten"):
        mine, other = ours.Histograms(tag)[0].histogram_value, theirs.Histograms(tag)[0].histogram_value
        assert mine.bucket == other.bucket and mine.num == other.num == 1000
        for part in ("bucket_limit", "min", "max", "sum", "sum_squares"):
            assert np.allclose(getattr(mine, part), getattr(other, part)), part
    assert ours.Tensors("new")[0].tensor_proto == theirs.Tensors("new")[0].tensor_proto
    assert ours.Tensors("note/text_summary")[0].tensor_proto == theirs.Tensors("note/text_summary")[0].tensor_proto


def test_several_curves_are_folders_of_one_chart(tmp_path):
    with SummaryWriter(tmp_path) as board:
        board.add_scalars("loss", {"train": genesis.tensor(1.0), "test": 2.0}, 5)
    assert board.get_logdir() == str(tmp_path)
    for curve, value in (("train", 1.0), ("test", 2.0)):
        (point,) = read(tmp_path / f"loss_{curve}").Scalars("loss")
        assert (point.step, point.value) == (5, value)


def pixels(png, height):
    data, at = b"", 8
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        data += png[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    return np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, -1)[:, 1:]


@pytest.mark.parametrize("layout", ["CHW", "HWC", "HW"])
def test_images_hold_their_pixels(tmp_path, layout):
    image = genesis.arange(24).reshape(3, 2, 4).float() / 23
    given = {"CHW": image, "HWC": image.permute(1, 2, 0), "HW": image[0]}[layout]
    with SummaryWriter(tmp_path) as board:
        board.add_image("digit", given, 1, dataformats=layout)
    (found,) = read(tmp_path).Images("digit")
    expected = np.round((given if layout == "HW" else image.permute(1, 2, 0)).numpy() * 255)
    assert (found.height, found.width) == (2, 4)
    assert np.array_equal(pixels(found.encoded_image_string, 2), expected.reshape(2, -1))


def test_curves_settings_and_grids_are_those_of_pytorchs_writer(tmp_path):
    draw = np.random.default_rng(0)
    labels, scores, images = draw.integers(0, 2, 50), draw.random(50, np.float32), draw.random((10, 3, 4, 5), np.float32)
    for folder, writer, tensor in (("ours", SummaryWriter, genesis.tensor), ("theirs", TorchWriter, torch.tensor)):
        with writer(str(tmp_path / folder)) as board:
            board.add_pr_curve("pr", tensor(labels), tensor(scores), 3, num_thresholds=9)
            board.add_pr_curve("weighted", tensor(labels), tensor(scores), weights=scores)
            board.add_images("grid", tensor(images), 2)
            settings, choices = {"lr": 0.5, "deep": True, "name": "a", "none": None}, {"lr": [0.5, 1.0]}
            board.add_hparams(settings, {"loss": tensor(0.25)}, choices, "run", 4)
    ours, theirs = read(tmp_path / "ours"), read(tmp_path / "theirs")
    for tag in ("pr", "weighted"):
        (mine,), (other,) = ours.Tensors(tag), theirs.Tensors(tag)
        assert np.allclose(mine.tensor_proto.float_val, other.tensor_proto.float_val) and mine.step == other.step
        assert mine.tensor_proto.tensor_shape == other.tensor_proto.tensor_shape
        assert ours.SummaryMetadata(tag) == theirs.SummaryMetadata(tag)
    (mine,), (other,) = ours.Images("grid"), theirs.Images("grid")
    assert (mine.height, mine.width) == (other.height, other.width) == (8, 40)
    expected = np.zeros((2, 8, 3, 4, 5), np.float32)
    expected.reshape(16, 3, 4, 5)[:10] = images
    expected = np.round(expected.transpose(0, 3, 1, 4, 2).reshape(8, -1) * 255)
    assert np.array_equal(pixels(mine.encoded_image_string, 8), expected)
    ours, theirs = read(tmp_path / "ours" / "run"), read(tmp_path / "theirs" / "run")
    assert ours.Scalars("loss")[0].value == 0.25 and ours.Scalars("loss")[0].step == 4
    for tag in ("experiment", "session_start_info", "session_end_info"):
        assert ours.SummaryMetadata(f"_hparams_/{tag}") == theirs.SummaryMetadata(f"_hparams_/{tag}")


def test_figures_are_images(tmp_path):
    figures = pytest.importorskip("matplotlib.figure")
    figure = figures.Figure(figsize=(2, 1), dpi=50, facecolor="red")
    with SummaryWriter(tmp_path) as board:
        board.add_figure("one", figure, 1)
        board.add_figure("two", [figure, figure], 1)
    (found,) = read(tmp_path).Images("one")
    assert (found.height, found.width) == (50, 100)
    assert np.array_equal(pixels(found.encoded_image_string, 50), np.tile([255, 0, 0], (50, 100)))
    assert read(tmp_path).Images("two")[0].width == 200


def test_a_graph_is_folded_by_module(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    before = genesis.debug.stats()["native_calls"]
    with SummaryWriter(tmp_path) as board:
        board.add_graph(model, genesis.ones(5, 3))
    nodes = {node.name: node for node in read(tmp_path).Graph().node}
    assert any(name.startswith("Sequential/0/matmul") for name in nodes) and any("/1/relu" in name for name in nodes)
    assert all(read_from in nodes for node in nodes.values() for read_from in node.input)
    (last,) = [n for n in nodes.values() if not any(n.name in other.input for other in nodes.values())]
    assert [d.size for d in last.attr["_output_shapes"].list.shape[0].dim] == [5, 2]
    assert genesis.debug.stats()["native_calls"] - before <= 1  # at most what was pending


def test_what_cannot_be_drawn_is_refused(tmp_path):
    with SummaryWriter(tmp_path) as board:
        with pytest.raises(ValueError, match="one number"):
            board.add_scalar("loss", genesis.ones(2))
        with pytest.raises(ValueError, match="no elements"):
            board.add_histogram("none", genesis.ones(0))
        with pytest.raises(ValueError, match="laid out"):
            board.add_image("digit", genesis.ones(2, 3))
        with pytest.raises(ValueError, match="channels"):
            board.add_image("digit", genesis.ones(2, 3, 3))


def test_a_script_of_pytorchs_finds_the_writer(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(f"""
import sys
import torch
print("tensorboard" in sys.modules)
from torch.utils.tensorboard import SummaryWriter
with SummaryWriter({str(tmp_path / "runs")!r}) as board:
    board.add_scalar("loss", torch.tensor(2.0), 1)
print(SummaryWriter.__module__)
""", encoding="utf-8")
    run = subprocess.run([sys.executable, "-m", "genesis.as_torch", script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "genesis.utils.tensorboard"]
    assert [point.value for point in read(tmp_path / "runs").Scalars("loss")] == [2.0]
