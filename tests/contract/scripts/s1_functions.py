# ruff: noqa
# The code of the document on the function system, in its order. What it leaves open has the least that makes it run.
import genesis
from genesis import Function


def efficient_computation(input):
    return input * input


def efficient_gradient_computation(input, grad_output):
    return 2 * input * grad_output


def stable_computation(input):
    return input.sigmoid()


def stable_gradient(input, output, grad_output):
    return grad_output * output * (1 - output)


computation, gradient_computation = efficient_computation, efficient_gradient_computation


# ---- 实现示例 ----
class AddFunction(Function):
    """支持梯度的加法函数。"""

    @staticmethod
    def forward(ctx, a, b):
        """前向传播:计算a + b。"""
        # 加法不需要保存输入
        return genesis.ops.add(a, b)

    @staticmethod
    def backward(ctx, grad_output):
        """反向传播:梯度不变流动。"""
        return grad_output, grad_output


a, b = (genesis.tensor([[1., 2.], [3., 4.]], requires_grad=True) for _ in range(2))
# 使用
add = AddFunction.apply
c = add(a, b) # 等价于支持自动微分的 a + b
added = c


class MatMulFunction(Function):
    """支持梯度的矩阵乘法。"""

    @staticmethod
    def forward(ctx, a, b):
        """前向传播:计算 a @ b。"""
        ctx.save_for_backward(a, b)
        return genesis.ops.matmul(a, b)

    @staticmethod
    def backward(ctx, grad_output):
        """反向传播:使用链式法则计算梯度。"""
        a, b = ctx.saved_tensors
        grad_a = genesis.ops.matmul(grad_output, b.transpose(-2, -1))
        grad_b = genesis.ops.matmul(a.transpose(-2, -1), grad_output)
        return grad_a, grad_b


# 使用
matmul = MatMulFunction.apply
c = matmul(a, b) # 等价于支持自动微分的 a @ b


class ReluFunction(Function):
    """支持梯度的ReLU激活。"""

    @staticmethod
    def forward(ctx, input):
        """前向传播:计算 max(0, input)。"""
        output = genesis.ops.maximum(input, 0)
        ctx.save_for_backward(input)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        """反向传播:负输入的梯度为0。"""
        input, = ctx.saved_tensors
        mask = input > 0
        return grad_output * mask


x = genesis.tensor([-1., 2.], requires_grad=True)
# 使用
relu = ReluFunction.apply
activated = relu(x)


# ---- 高级特性 ----
class AddInplaceFunction(Function):
    """原地加法函数。"""

    @staticmethod
    def forward(ctx, a, b):
        """前向传播:原地修改a。"""
        ctx.save_variable('original_a', a.clone())
        a.add_(b)
        return a

    @staticmethod
    def backward(ctx, grad_output):
        """原地操作的反向传播。"""
        return grad_output, grad_output


class SplitFunction(Function):
    """返回多个输出的函数。"""

    @staticmethod
    def forward(ctx, input, split_sizes):
        """将输入张量分割成多个部分。"""
        ctx.save_variable('split_sizes', split_sizes)
        return genesis.ops.split(input, split_sizes)

    @staticmethod
    def backward(ctx, *grad_outputs):
        """从多个输出连接梯度。"""
        grad_input = genesis.ops.cat(grad_outputs, dim=0)
        return grad_input, None # split_sizes没有梯度


class ScaleFunction(Function):
    """通过常数因子缩放张量。"""

    @staticmethod
    def forward(ctx, input, scale_factor):
        """通过常数因子缩放输入。"""
        ctx.save_variable('scale_factor', scale_factor)
        return input * scale_factor

    @staticmethod
    def backward(ctx, grad_output):
        """通过相同因子缩放梯度。"""
        scale_factor = ctx.saved_variables['scale_factor']
        return grad_output * scale_factor, None


# ---- 与操作集成 ----
# 向操作调度器注册函数
genesis.ops.register_function('add', AddFunction.apply)
genesis.ops.register_function('matmul', MatMulFunction.apply)
genesis.ops.register_function('relu', ReluFunction.apply)

# 现在操作自动使用注册的函数
x = genesis.tensor([1, 2, 3], requires_grad=True)
y = genesis.tensor([4, 5, 6], requires_grad=True)
z = x + y # 自动使用AddFunction
registered, by_x, by_y = z, x, y


class CustomFunction(ScaleFunction):
    @staticmethod
    def forward(ctx, input, scale_factor=2.0):
        return ScaleFunction.forward(ctx, input, scale_factor)


tensor, param = genesis.tensor([1., 2.]), 3.0


def custom_operation(input, param):
    """使用Function定义自定义操作。"""
    return CustomFunction.apply(input, param)


# 注册为操作
genesis.ops.register_operation('custom_op', custom_operation)
# 像任何其他操作一样使用
result = genesis.custom_op(tensor, param)
scaled = result


# ---- 性能考虑 ----
class EfficientFunction(Function):
    """内存高效的函数实现。"""

    @staticmethod
    def forward(ctx, input):
        # 只保存反向所需的内容
        ctx.save_for_backward(input.detach()) # 分离以避免递归梯度
        # 高效计算结果
        result = efficient_computation(input)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors
        # 高效计算梯度
        return efficient_gradient_computation(input, grad_output)


class StableFunction(Function):
    """数值稳定的函数实现。"""

    @staticmethod
    def forward(ctx, input):
        # 使用数值稳定的计算
        output = stable_computation(input)
        ctx.save_for_backward(input, output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, output = ctx.saved_tensors
        # 使用稳定的梯度计算
        return stable_gradient(input, output, grad_output)


# ---- 调试和测试 ----
def test_function_gradients():
    """测试函数梯度计算。"""
    x = genesis.tensor([1.0, 2.0, 3.0], requires_grad=True)
    # 测试前向传播
    y = CustomFunction.apply(x)
    # 测试反向传播
    y.backward(genesis.tensor([1.0, 1.0, 1.0]))
    # 检查梯度
    assert x.grad is not None
    print(f"梯度:{x.grad}")


test_function_gradients()


class DebugFunction(Function):
    """带调试信息的函数。"""

    @staticmethod
    def forward(ctx, input):
        print(f"前向:输入形状 = {input.shape}")
        ctx.save_for_backward(input)
        result = computation(input)
        print(f"前向:输出形状 = {result.shape}")
        return result

    @staticmethod
    def backward(ctx, grad_output):
        print(f"反向:grad_output形状 = {grad_output.shape}")
        input, = ctx.saved_tensors
        grad_input = gradient_computation(input, grad_output)
        print(f"反向:grad_input形状 = {grad_input.shape}")
        return grad_input


x = genesis.ones(2, 3, requires_grad=True)
debugged = DebugFunction.apply(x)
print("----")
debugged.sum().backward()
