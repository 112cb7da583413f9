"""Products that read their operands where they lie: windows of images, neighbours in neither direction, 16 bits."""

import numpy as np
import pytest

import genesis
from genesis.execution.plan import plan_for
from genesis.ir.dtypes import float64, int64
from genesis.lower import lower
from genesis.lower.index_map import PLAIN
from genesis.lower.stages import Product
from genesis.lower.target import SequentialTiles, Target
from genesis.ops.reference import evaluate_all
from genesis.tensor.dispatch import array_of

STRIDED = Target(1, SequentialTiles(1 << 30, 1, 1), unroll=False, strided=True)


def products_of(*tensors):
    """(the products that pending tensors lower to, the values of all nodes of their program)."""
    arrays = [array_of(tensor) for tensor in tensors]
    trace = arrays[0].trace
    kinds = [float64 if isinstance(scalar, float) else int64 for scalar in trace.scalars]
    program = lower(trace.nodes, tuple(array.index for array in arrays), STRIDED, kinds)
    places = [index for index, node in enumerate(trace.nodes) if node.op == "input"]
    memories = {i: trace.inputs[places.index(program.origins[i])].memory for i in program.inputs}
    given = {i: memory.numpy(program.nodes[i].dtype) for i, memory in memories.items()}
    stages = program.schedule.stages
    products = [call for stage in stages for call in stage if isinstance(call, Product)]
    wanted = {value for call in products for value in (*call.writes, *call.reads, *program.nodes[call.node].inputs)}
    return products, evaluate_all(program.nodes, wanted, given, trace.scalars), program.nodes


def assert_operands_lie_there(*tensors):
    """What a product reads at its layouts in memory is what the graph says it multiplies."""
    products, values, nodes = products_of(*tensors)
    for call in products:
        for base, layout, value in zip(call.reads, (call.a.layout, call.b.layout), nodes[call.node].inputs, strict=True):
            memory = values[base].reshape(-1)
            strides = [stride * memory.itemsize for stride in layout.strides]
            read = np.lib.stride_tricks.as_strided(memory[layout.offset :], layout.shape, strides)
            np.testing.assert_array_equal(read.reshape(values[value].shape), values[value])
    return products


def leaves(*shapes):
    """Tensors that require gradients, in memory."""
    made = [genesis.tensor(np.cos(np.arange(np.prod(shape))).reshape(shape), requires_grad=True) for shape in shapes]
    sum(x.sum() for x in made).item()
    return made


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"), [(1, 1, 1, 1), (2, 1, 1, 1), (1, 2, 2, 2), ((1, 2), 0, 1, 1)])
def test_a_convolution_and_its_gradients_are_products_of_windows(stride, padding, dilation, groups):
    x, weight = leaves((2, 4, 12, 13), (6, 4 // groups, 3, 3))
    y = genesis.nn.functional.conv2d(x, weight, None, stride, padding, dilation, groups)
    y.square().sum().backward()
    products = assert_operands_lie_there(y, x.grad, weight.grad)
    steps = np.broadcast_to(stride, 2).prod()  # the gradient by the input has a product for each remainder of the positions
    assert len(products) == 2 + steps and sum({call.a.axis_groups, call.b.axis_groups} != {PLAIN} for call in products) >= 2
    assert [call.summed for call in products].count(True) == 1


def test_what_lies_with_gaps_is_not_copied():
    (x,) = leaves((11, 14))
    y = x[::2, ::3] @ x[1:6, :12:2]
    stages = lower(array_of(y).trace.nodes, (array_of(y).index,), STRIDED).schedule.stages
    assert [len(stage) for stage in stages] == [1]
    assert_operands_lie_there(y)
    assert len(plan_for(array_of(y).trace).lowered.schedule.stages) > 1  # as on the CPU, whose products want neighbours


def test_sixteen_bits_are_multiplied_as_they_lie():
    a, b = (genesis.ones(4, 5, dtype=genesis.bfloat16) for _ in range(2))
    (a.sum() + b.sum()).item()
    y = a @ b.t()
    stages = lower(array_of(y).trace.nodes, (array_of(y).index,), STRIDED).schedule.stages
    ((call,),) = stages
    assert isinstance(call, Product)
