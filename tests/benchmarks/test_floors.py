"""What the machine allows: measured by both, and added up stage by stage."""

from benchmarks.floors import Floors, floors, seconds_for
from benchmarks.measure import Limits, Result, Settings
from genesis.debug.costs import StageTime


def test_floors_are_the_best_that_was_measured():
    best, (copy, product) = floors(Settings(quick=True))
    assert best.bandwidth == 8 * 4096 / min(copy.medians.values())
    assert best.flops == 2 * 64**3 / min(product.medians.values())
    assert set(copy.medians) == set(product.medians) == {"genesis", "torch eager"}


def test_a_stage_needs_the_time_of_its_products_or_of_its_bytes():
    best = Floors(bandwidth=100.0, flops=1000.0, cache=400.0, cached=50.0)
    stages = [StageTime("product", 9.0, nbytes=200, flops=5000), StageTime("kernel", 9.0, nbytes=200, flops=0),
              StageTime("kernel", 9.0, nbytes=40, flops=0)]
    assert seconds_for(stages, best) == 5.0 + 2.0 + 0.1


def test_a_bar_of_the_floor_is_set_where_one_is_promised():
    result = Result("title", {"genesis compiled": 3.0})
    result.beside_floor(2.0, Limits(0.5, 0.5))
    assert not result.bars and "1.50 times" in result.facts["floor"]
    result.beside_floor(2.0, Limits(0.5, 0.5, floor=1.2))
    assert [(bar.value, bar.kept) for bar in result.bars] == [(1.5, False)]
