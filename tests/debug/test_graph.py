"""genesis.debug: the pending graph, the lowered program and counters."""

import networkx

import genesis
from genesis.debug import Recording, graph, program, reset_stats, stats


def test_graph_shows_what_a_tensor_needs_and_nothing_else():
    x = genesis.tensor([1.0, 2.0])
    y = x.exp() + 1
    unrelated = x.sin()
    text = str(graph(y))
    assert "exp(" in text and "add(" in text and "sin(" not in text and "test_graph.py:" in text
    assert "sin(" in str(graph()) and unrelated.shape == (2,)


def test_what_is_entered_for_a_call_has_the_line_of_the_call():
    weight, first = genesis.ones(2, 2).tolist(), genesis.tensor([[1.0, 2.0]]).exp()
    second = first.sin()
    weight = genesis.tensor(weight)
    third = second @ weight
    shown = graph(third * 3.5)
    number = {shown.nodes[i].op: shown.lines[i][1] for i in shown.indices if i in shown.lines}
    assert number["input"] == number["matmul"] and number["scalar"] == number["mul"] == number["matmul"] + 1


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


def test_phases_are_those_of_a_step():
    w = genesis.tensor([2.0], requires_grad=True)
    (w * 3).exp().sum().backward()
    w.data.sub_(w.grad)
    recorded = graph(w)
    phases = [recorded.phases[i] for i in recorded.indices]
    assert {recorded.nodes[i].op for i in recorded.indices if recorded.phases[i] == "forward"} >= {"mul", "exp"}
    assert phases[-1] == "update" and "backward" in phases


def test_a_program_without_a_backward_has_no_phases():
    assert graph(genesis.tensor([1.0]).exp()).phases == {}


def test_launches_name_each_value_once_and_share_their_stages_time():
    x = genesis.ones(5, 5)
    lowered = program(((x @ x).relu() @ x).exp().sum(0))
    computed = [i for launch in lowered.launches for i in launch.nodes if lowered.graph.nodes[i].op != "input"]
    assert len(computed) == len(set(computed)) and {lowered.graph.nodes[i].op for i in computed} >= {"matmul", "exp", "sum"}
    for stage in {launch.stage for launch in lowered.launches}:
        assert abs(sum(launch.share for launch in lowered.launches if launch.stage == stage) - 1) < 1e-9
