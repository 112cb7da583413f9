"""Long reports begin with a summary; short ones are shown whole."""

from __future__ import annotations

import genesis
from genesis.debug.summary import LONG, Spent, time_summary, why
from genesis.lower.stages import Estimate


def chain(x, links):
    for _ in range(links):
        x = x @ x
    return x


def test_many_stages_are_summed_up_and_few_are_listed():
    x = genesis.eye(8)
    with genesis.debug.timing() as few:
        chain(x, 3).tolist()
    assert len(repr(few).splitlines()) == 3
    with genesis.debug.timing() as many:
        chain(x, LONG + 5).tolist()
    lines = repr(many).splitlines()
    assert lines[0].startswith(f"1 program, {LONG + 5} stages, took ") and "product 100%" in lines[0]
    assert len(lines) <= 12 and "test_summary.py:12" in lines[3] and lines[-1].endswith("text(detail=True)")
    assert len(many.text(detail=True).splitlines()) == LONG + 5
    assert few.text(detail=False).startswith("1 program, 3 stages")


def test_explanations_and_kernels_have_a_summary_too():
    x = genesis.eye(8)
    explanation = genesis.debug.explain(lambda x: chain(x, LONG + 5), x)
    assert "is replayed" in repr(explanation) and len(repr(explanation).splitlines()) <= 12
    assert len(explanation.text(detail=True).splitlines()) > LONG
    module = genesis.compile(genesis.nn.Linear(2, 2))
    assert repr(genesis.debug.explain(module, genesis.ones(1, 2))).startswith("Linear: 1 program")
    cost = genesis.debug.kernels(chain(genesis.eye(8) * 2, LONG + 5))
    assert "by the cost model" in repr(cost) and "longest:" in repr(cost) and repr(cost) != cost.text(detail=True)


def test_the_stages_that_lose_most_come_first_with_a_reason():
    def stage(text, seconds, nbytes=8, flops=8, estimate=1e-6):
        return Spent(text, [("a.py", 1)], ["Net.head"], Estimate(nbytes, flops, estimate), seconds)

    slow, fine, host = stage("product a", 9e-3), stage("kernel b", 8e-3, estimate=8e-3), stage("host c", 3e-3)
    lines = time_summary([[fine, slow], [host]])
    assert lines[0] == "2 programs, 3 stages, took 20.000 ms: product 45%, kernel 40%, host 15%"
    assert [line.split()[0] for line in lines[3::2]] == ["product", "host", "kernel"]
    assert lines[3].endswith("a.py:1 Net.head")
    assert why(host) == "Python computes it" and "launch" in why(stage("kernel d", 1e-6))
    assert why(stage("product e", 1e-3, flops=10**9)).startswith("1000.0 of ")
    assert why(stage("kernel f", 1e-3, nbytes=10**7)).startswith("10.0 of ")


def test_a_graph_and_its_program_begin_with_what_is_in_them():
    layers = genesis.nn.Sequential(*[genesis.nn.Linear(5, 5) for _ in range(12)])
    genesis.synchronize()
    y = layers(genesis.ones(2, 5))
    graph, program = genesis.debug.graph(y), genesis.debug.program(y)
    lines = repr(graph).splitlines()
    assert lines[0].startswith(f"{len(graph)} values: ") and "24 inputs of " in lines[0] and len(lines) <= 12
    assert lines[1] == "operations: matmul 12, add 12" and lines[2].startswith("lines with most: test_summary.py:")
    assert lines[3].startswith("modules with most: Sequential.0 2, ") and lines[3].endswith(", and 6 more")
    assert lines[-2].startswith("return %") and lines[-1] == f"{len(graph) + 1} lines of detail: text(detail=True)"
    assert len(graph.text(detail=True).splitlines()) == len(graph) + 1
    counts = program.text(detail=False).splitlines()[:2]
    assert counts[0].startswith(f"{len(program.launches)} instructions: 13 kernels, 12 products; arena of ")
    assert counts[1].startswith(f"{len(program.kernels)} kernel")
    few = genesis.debug.graph(layers[0](genesis.ones(2, 5)))
    assert few.text() == few.text(detail=True) != few.text(detail=False)
