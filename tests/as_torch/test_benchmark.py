"""`torch.utils.benchmark`: statistics, texts and tables are PyTorch's; what a statement computes is measured with it."""

import re

import pytest
import torch.utils.benchmark as theirs

import genesis
from genesis.as_torch.stand_ins import benchmark as ours
from genesis.as_torch.stand_ins import benchmark_compare as tables

TIMES = {("a", "eager"): [1.1e-4, 1.2e-4, 1.15e-4, 1.13e-4], ("b", "eager"): [2.0e-3, 2.9e-3, 2.1e-3, 2.4e-3, 2.2e-3],
         ("a", "compiled"): [5.61e-5, 5.6e-5], ("b", "compiled"): [1e-3]}


def measured(lib, label="product", env=None):
    return [lib.Measurement(10, [10 * t for t in times], lib.TaskSpec(
        "x @ y", "import math", "", label, row, column, env, 1 + (row == "b"))) for (row, column), times in TIMES.items()]


def test_statistics_and_texts():
    for have, want in zip(measured(ours), measured(theirs), strict=True):
        for name in ("mean", "median", "iqr", "significant_figures", "has_warnings", "title", "as_row_name", "sub_label"):
            value = getattr(want, name)
            assert getattr(have, name) == (pytest.approx(value) if isinstance(value, float) else value)
        assert repr(have).splitlines()[1:] == [line for line in repr(want).splitlines()[1:] if line.strip()]
    assert [ours.select_unit(t) for t in (3e-8, 2e-5, 0.5, 3.0)] == [theirs.select_unit(t) for t in (3e-8, 2e-5, 0.5, 3.0)]
    assert ours.trim_sigfig(3.14159, 2) == pytest.approx(theirs.trim_sigfig(3.14159, 2))
    assert [m.times for m in ours.Measurement.merge(measured(ours) * 2)] == [
        m.times for m in theirs.Measurement.merge(measured(theirs) * 2)]


@pytest.mark.parametrize("settings", [
    (), ("trim_significant_figures",), ("highlight_warnings", "colorize"), ("colorize_rows",)])
def test_tables_are_torchs(settings):
    def table(lib):
        results = measured(lib) + measured(lib, "sum", "new") + measured(lib, "sum", "old")[:3]
        made = (tables if lib is ours else lib).Compare(results)
        for name in settings:
            made.colorize(rowwise=True) if name == "colorize_rows" else getattr(made, name)()
        return str(made)

    assert re.sub(r"\s+\n", "\n", table(ours)) == re.sub(r"\s+\n", "\n", table(theirs))
    for lib in (ours, theirs):
        with pytest.raises(ValueError, match="Expected an instance"):
            (tables if lib is ours else lib).Compare([1])


def test_a_timer_measures_what_is_computed():
    seen, told = [], []
    timer = ours.Timer("seen.append(x + 1)\nx * 2", timer=lambda: len(seen), globals={"x": genesis.ones(3), "seen": seen},
                       label="l", sub_label="s", description="d", env="e", num_threads=2)  # a run takes a second
    assert timer.timeit(4).times == [1] and len(seen) == 6
    found = timer.blocked_autorange(lambda number, seconds: told.append((number, seconds)), min_run_time=3)
    assert (found.number_per_run, found.raw_times, told) == (1, [1, 1, 1], [(1, 1)] * 3)
    assert (found.sub_label, found.description, found.env, found.num_threads) == ("s", "d", "e", 2)
    assert len(timer.adaptive_autorange(min_run_time=2).times) == 4
    for wrong in ({"language": "c++"}, {"global_setup": "x"}, {"stmt": len}):
        for lib in (ours, theirs):
            if wrong != {"language": "c++"} or lib is ours:
                with pytest.raises(ValueError):
                    lib.Timer(**wrong)
