"""genesis.debug: the pending graph, the lowered program, counters, and where nodes are drawn."""

from itertools import pairwise

import networkx
import pytest

import genesis
from genesis.debug import Recording, graph, program, reset_stats, stats
from genesis.debug.page import GAP, place


def test_graph_shows_what_a_tensor_needs_and_nothing_else():
    x = genesis.tensor([1.0, 2.0])
    y = x.exp() + 1
    unrelated = x.sin()
    text = str(graph(y))
    assert "exp(" in text and "add(" in text and "sin(" not in text and "test_graph.py:" in text
    assert "sin(" in str(graph()) and unrelated.shape == (2,)


def test_graph_of_a_computed_tensor_is_empty():
    x = genesis.tensor([1.0]) * 3
    x.tolist()
    assert len(graph(x)) == 0 and str(graph(x)) == "nothing is pending"


def test_to_networkx_is_acyclic_and_carries_shape_dtype_and_line():
    x = genesis.tensor([[1.0, 2.0]])
    y = (x @ x.T).exp()
    result = graph(y).to_networkx()
    assert networkx.is_directed_acyclic_graph(result)
    (last,) = [i for i, output in result.nodes(data="output") if output]
    node = result.nodes[last]
    assert (node["op"], node["shape"], node["dtype"]) == ("exp", (1, 1), "float32")
    assert node["line"][0].endswith("test_graph.py")


def test_program_shows_kernels_without_running():
    x = genesis.tensor([[1.0, 2.0]])
    y = (x * 2 + 1).exp()
    before = stats()["native_calls"]
    lowered = program(y)
    assert stats()["native_calls"] == before and len(graph(y)) > 0
    (kernel,) = lowered.kernels
    assert kernel.ops[-1] == "exp" and kernel.reads and kernel.writes and "exp(" in kernel.source
    assert lowered.arena_bytes == 0 and str(lowered).startswith("kernel")


def test_a_recording_counts_runs_of_one_program():
    with Recording() as recording:
        for number in range(4):
            (genesis.tensor([1.0]) * (number + 2.5)).tolist()
    assert [flushed.runs for flushed in recording.programs] == [4]


def test_stats_count_flushes_from_zero():
    (genesis.tensor([1.0]) + 1).tolist()
    reset_stats()
    (genesis.tensor([1.0]) + 1).tolist()
    counts = stats()
    assert counts["flushes"] == 1 and counts["plan_hits"] + counts["plans_built"] == 1
    assert set(counts) >= {"kernels_compiled", "kernels_loaded", "plans_built", "plan_hits", "flushes", "native_calls"}


# ---- layout ----


def test_every_edge_points_down():
    names = {i: 40.0 for i in range(30)}
    edges = [(i, j) for j in names for i in (j // 2, j // 3) if i != j]
    centres, corners = place(names, edges)
    assert all(centres[a][1] < centres[b][1] for a, b in edges)
    assert set(corners) == set(edges)
    for (a, b), points in corners.items():
        heights = [centres[a][1], *[y for _, y in points], centres[b][1]]
        assert heights == sorted(heights)


def test_neighbours_do_not_overlap():
    widths = {i: 20.0 + 7 * (i % 5) for i in range(24)}
    centres, _ = place(widths, [(i, 20 + i % 4) for i in range(20)])
    rows = {}
    for name, (x, y) in centres.items():
        rows.setdefault(y, []).append((x, widths[name]))
    for row in rows.values():
        row.sort()
        for (x0, w0), (x1, w1) in pairwise(row):
            assert x1 - x0 >= (w0 + w1) / 2 + GAP - 1e-6


def test_a_chain_is_straight():
    centres, _ = place({i: 50.0 for i in range(5)}, [(i, i + 1) for i in range(4)])
    assert {round(x, 6) for x, _ in centres.values()} == {0.0}


def test_an_input_sits_right_above_its_first_reader():
    centres, _ = place(dict.fromkeys("abdc", 10.0), [("a", "b"), ("b", "c"), ("d", "c")])
    assert centres["d"][1] == centres["b"][1]


@pytest.mark.parametrize("count", [0, 1])
def test_small_graphs_have_a_layout(count):
    assert len(place({i: 10.0 for i in range(count)}, []).centres) == count
