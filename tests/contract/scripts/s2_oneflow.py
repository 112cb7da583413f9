# ruff: noqa
# The code of the article on OneFlow's autograd, with the least in place of its `...`.
import genesis.oneflow as of

# 创建可微函数
class MyFunction(of.Function):
    @of.staticmethod
    def forward(ctx, input):
        # 正向传播计算
        output = input * input
        ctx.save_for_backward(input)  # 保存反向传播所需中间值
        return output

    @of.staticmethod
    def backward(ctx, grad_output):
        # 反向传播计算
        input, = ctx.saved_tensors
        grad_input = 2 * input * grad_output
        return grad_input

# 创建 Variable
input_tensor = of.Tensor([1., 2., 3.])

# 计算正向传播
output_tensor = MyFunction()(input_tensor)

# 计算反向传播
grad_input_tensor = output_tensor.grad()
