"""Profiles: whose time it is, that all of it is found, and what is written."""

from __future__ import annotations

import doctest
import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import genesis
from genesis import nn, optim
from genesis.profiler import ProfilerAction, profile, record_function, schedule

WIDTH = 256


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.second(self.first(x).relu()).square().mean()


@pytest.fixture
def step():
    net = Net()
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    x = genesis.ones(512, WIDTH)

    def step():
        optimizer.zero_grad()
        loss = net(x)
        loss.backward()
        optimizer.step()
        return loss

    step.net = net
    return step


@pytest.mark.parametrize("compiled", [False, True])
def test_the_parts_of_a_step_add_up_to_its_time(step, compiled):
    run = genesis.compile(step) if compiled else step
    for _ in range(4):
        run().item()
    found = 0.0
    for _ in range(9):  # what takes this process its processor, between two parts, is no part
        with profile() as p:
            began = time.perf_counter()
            for _ in range(5):
                run().item()
            taken = time.perf_counter() - began
        assert sum(p.measured.parts.values()) <= 1.01 * p.measured.wall
        if (found := max(found, sum(p.measured.parts.values()) / taken)) > 0.9:
            break
    assert found > 0.9
    assert p.measured.parts["kernels"] == pytest.approx(sum(row.seconds for row in p.rows()), rel=0.05)
    assert sum(len(program.runs) for program in p.measured.programs) == 5
    if compiled:
        assert {"guards", "replaying"} <= p.measured.parts.keys()


@pytest.mark.parametrize("compiled", [False, True])
def test_modules_have_their_names_when_they_are_gone(compiled):
    nets = [Net()]

    def call(x):
        return nets[0](x)

    run = genesis.compile(call) if compiled else call
    x = genesis.ones(4, WIDTH)
    for _ in range(2):
        run(x).item()
    with profile() as p:
        run(x).item()
    nets.clear()
    gc.collect()
    found = {row.name for row in p.rows("module")}
    assert {"Net.first", "Net.second"} <= found


@pytest.mark.parametrize("by", ["line", "module", "operation", "kernel"])
def test_shares_are_whole_and_belong_to_their_makers(step, by):
    step().item()
    with profile() as p:
        step().item()
    rows = {row.name: row for row in p.rows(by)}
    assert sum(row.seconds for row in rows.values()) == pytest.approx(sum(sum(r.seconds()) for r in p.measured.programs))
    flops = {
        "module": {"Net.first": 2, "Net.second": 3}, "operation": {"linear": 2, "linear (backward)": 3},
    }.get(by, {})
    for name, products in flops.items():  # of which the first layer needs no gradient of its input
        assert rows[name].flops == pytest.approx(products * 2 * 512 * WIDTH**2, rel=0.05)
    if by == "module":
        assert "SGD" in rows and 0 < rows["Net.second"].gradient_seconds < rows["Net.second"].seconds
    if by == "line":
        assert all(name.startswith("test_profiles.py:") for name in rows)
    for sort in ("time", "calls", "bytes", "flops", "name"):
        assert len(p.table(by, sort, limit=1).splitlines()) <= 6


def test_a_line_of_a_source_has_its_time_in_the_margin(step, tmp_path):
    with profile() as p:
        step().item()
    text = p.annotate()
    line = next(line for line in text.splitlines() if "self.second(self.first(x)" in line)
    assert line.lstrip()[0].isdigit() and line.split()[1] != line.split()[2]
    assert "self.first, self.second" not in text and "self.first, self.second" in p.annotate("test_profiles.py", whole=True)
    with pytest.raises(ValueError, match="no time was measured"):
        p.annotate("other.py")


def test_a_fused_kernel_is_split_over_its_lines():
    x = genesis.ones(1 << 16)
    with profile() as p:
        y = x.exp()
        z = y + 1.0
        z.sum().item()
    rows = p.rows("line")
    assert len(p.measured.programs[0].stages) <= 2 and len(rows) == 3
    assert rows[0].seconds > 2 * rows[1].seconds  # the exponential costs more than an addition


def test_a_trace_has_a_track_for_python_and_one_for_each_worker(step, tmp_path):
    before = genesis.get_num_threads()
    try:
        genesis.set_num_threads(2)
        for _ in range(3):
            step().item()
        with profile() as p, record_function("mine"):
            for _ in range(20):
                step().item()
    finally:
        genesis.set_num_threads(before)
    p.chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    tracks = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert {"Python", "worker 0 (the caller)", "worker 1"} <= {*tracks.values()}
    spans = [event for event in events if event["ph"] == "X"]
    assert {"mine", "tracing", "flushing", "launching", "step 0"} <= {event["name"] for event in spans}
    assert all(event["dur"] >= 0 for event in spans)
    for track in tracks:  # spans of a track lie apart or within each other
        ends: list[float] = []
        for event in sorted((e for e in spans if e["tid"] == track), key=lambda e: (e["ts"], -e["dur"])):
            while ends and ends[-1] <= event["ts"] + 1e-2:
                ends.pop()
            assert not ends or event["ts"] + event["dur"] <= ends[-1] + 1e-2
            ends.append(event["ts"] + event["dur"])
    stage = next(event for event in spans if "args" in event and "mine.Net.first" in event["args"]["modules"])
    assert stage["args"]["bytes"] > 0


def test_memory_at_the_peak_is_what_is_alive_there(step):
    with profile() as p:
        step().item()
    found = p.memory()
    held = found.at_peak()
    assert found.peak == sum(value.nbytes for value in held) == max(found.bytes_at)
    weights = [value for value in held if value.module == "Net.first" and value.kind == "input" and "[512" not in value.shape]
    assert sum(value.nbytes for value in weights) == 4 * (WIDTH * WIDTH + WIDTH)
    assert any(value.kind == "temporary" for value in found.values) and "peak" in repr(found)


def test_a_schedule_records_its_active_steps_and_hands_them_over(step):
    seen = []
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=lambda p: seen.append(
            (p.step_num, len(p.measured.windows), sum(len(r.runs) for r in p.measured.programs)))) as p:
        for _ in range(10):
            step().item()
            p.step()
    assert seen == [(4, 2, 2), (8, 2, 2)]  # as PyTorch, which counts the ended step
    plan = schedule(wait=0, warmup=0, active=1, skip_first=1)
    assert [plan(k) for k in range(3)] == [ProfilerAction.NONE, ProfilerAction.RECORD_AND_SAVE, ProfilerAction.RECORD_AND_SAVE]
    with pytest.raises(ValueError, match="active=1 or more"):
        schedule(wait=1, warmup=1, active=0)


def test_one_profile_at_a_time_and_nothing_is_left_of_it(step):
    from genesis.runtime.team import team
    from genesis.runtime.timeline import timeline

    with profile() as p:
        with pytest.raises(RuntimeError, match="another profile is open"), profile():
            pass
        with pytest.raises(KeyError):
            raise KeyError
        step().item()
    assert timeline.spans is None and not team._logs and p.rows()
    with pytest.raises(TypeError, match="unexpected arguments bogus"):
        profile(bogus=1)
    with pytest.raises(ValueError, match="want one of line, module"):
        p.table(by="colour")
    with pytest.raises(ValueError, match="want one of time, calls"):
        p.table(sort="colour")


def test_what_the_host_computes_and_plans_is_told():
    a = genesis.randn(8, 8, dtype=genesis.float64)
    with profile() as p:
        (genesis.linalg.eigvals(a @ a).abs() * 2).sum().item()
    assert any("eig" in row.name for row in p.rows("operation"))
    assert "planning" in p.measured.parts


SCRIPT = """
import sys
import genesis
x = genesis.ones(64, 64)
print((x @ x).exp().sum().isfinite().item(), sys.argv[1:])
"""


def test_scripts_run_under_the_profiler(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    run = subprocess.run(
        [sys.executable, "-m", "genesis", "profile", "--by", "operation", "--annotate", "--memory", "--chrome",
         str(tmp_path / "t.json"), str(script), "--steps", "3"],
        capture_output=True, text=True, env={**os.environ}, cwd=Path(__file__).parents[2], check=False)
    assert run.returncode == 0, run.stderr
    assert "['--steps', '3']" in run.stderr and "matmul" in run.stdout and "script.py" in run.stdout
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def test_the_page_runs():
    page = Path(__file__).parents[2] / "docs" / "profiling.md"
    assert doctest.testfile(str(page), module_relative=False).failed == 0


def test_averages_have_what_record_function_names():
    net, x = Net(), genesis.ones(4, WIDTH)
    with profile() as p:
        for _ in range(2):
            with record_function("inference"):
                y = net(x)
            y.item()
    rows = {row.key: row for row in p.key_averages()}
    named = rows["inference"]
    assert named.count == 2 and named.self_cpu_time_total == 0 and named.cpu_time == named.cpu_time_total / 2
    assert named.cpu_time_total >= rows["linear"].cpu_time_total > 0
    assert p.key_averages().self_cpu_time_total == pytest.approx(sum(row.seconds for row in p.rows("operation")) * 1e6)
    assert str(p.key_averages()).splitlines()[-1].startswith("inference: ")
