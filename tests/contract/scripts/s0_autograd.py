# ruff: noqa
# The code of the document on genesis.autograd, in its order. What it leaves open has the least that makes it run.
import genesis
from genesis import Function

# ---- 核心方法 ----
x = genesis.tensor([1., 2., 3.], requires_grad=True)
y = (x ** 2).sum()
y.backward()
print(x.grad) # tensor([2., 4., 6.])

x = genesis.tensor([1., 2.], requires_grad=True)
y = x.detach()
print(y.requires_grad) # False

x = genesis.tensor([1., 2.], requires_grad=True)
y = x * 2 # 非叶张量
y.retain_grad()
z = y.sum()
z.backward()
print(y.grad) # tensor([1., 1.])

x = genesis.tensor([1., 2.], requires_grad=True)
y = x.sum()
y.backward()
x.zero_grad()
print(x.grad) # None

# ---- 张量操作 ----
x = genesis.tensor([[1., 2.], [3., 4.]], requires_grad=True)
y = genesis.tensor([[2., 1.], [1., 2.]], requires_grad=True)
shape, dims, dim = (4,), (1, 0), 0
# 算术操作
z = x + y # 加法
z = x - y # 减法
z = x * y # 乘法
z = x / y # 除法
z = x ** y # 幂运算
z = x @ y # 矩阵乘法
# 一元操作
z = -x # 取负
z = x.abs() # 绝对值
z = x.exp() # 指数
z = x.log() # 自然对数
z = x.sqrt() # 平方根
z = x.sin() # 正弦
z = x.cos() # 余弦
z = x.tanh() # 双曲正切
# 归约操作
z = x.sum() # 求和
z = x.mean() # 平均值
z = x.max() # 最大值
z = x.min() # 最小值
# 形状操作
z = x.reshape(shape) # 重塑
z = x.transpose(dims) # 转置
z = x.squeeze() # 移除单维度
z = x.unsqueeze(dim) # 添加单维度
z = x.view(shape) # 以不同形状查看


# ---- 自定义函数示例 ----
class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        # 为后向传播保存输入
        ctx.save_for_backward(x)
        return genesis.tensor(x.data.exp(), requires_grad=x.requires_grad)

    @staticmethod
    def backward(ctx, grad_output):
        # 检索保存的张量
        x, = ctx.saved_tensors
        # exp(x)的梯度是exp(x)
        return grad_output * x.exp()


# 使用
exp = Exp.apply
x = genesis.tensor([1., 2., 3.], requires_grad=True)
y = exp(x)
y.sum().backward()
print(x.grad) # 通过自定义函数计算的梯度


# ---- 上下文管理 ----
def model(x):
    return x * 3


with genesis.no_grad():
    # 大多数操作不需要梯度
    y = model(x)
    with genesis.enable_grad():
        # 这个特定操作需要梯度
        z = y.sum()
        z.backward()

genesis.set_grad_enabled(False) # 全局禁用
y = x * 2 # 无梯度
genesis.set_grad_enabled(True) # 全局启用
z = x * 2 # 计算梯度
without, with_gradient = y, z


# ---- 梯度钩子 ----
def print_grad(grad):
    print(f"梯度: {grad}")
    return grad # 可以在这里修改梯度


x = genesis.tensor([1., 2., 3.], requires_grad=True)
x.register_hook(print_grad)
y = (x ** 2).sum()
y.backward() # 在后向传播期间打印梯度

# ---- 内存管理 ----
x = genesis.tensor([1., 2.], requires_grad=True)
y1 = x.sum()
y1.backward()
print(x.grad) # tensor([1., 1.])
y2 = (x * 2).sum()
y2.backward()
print(x.grad) # tensor([3., 3.]) - 累积了!

x.grad = None
cleared = x.grad
x.zero_grad()

# ---- 最佳实践 ----
model = genesis.nn.Linear(2, 1)
test_data = genesis.ones(3, 2)
model.eval()
with genesis.no_grad():
    predictions = model(test_data)

alpha, running_mean, batch_mean = 0.9, genesis.zeros(2), genesis.ones(2, requires_grad=True)
# 不需要running_mean的梯度
running_mean = (alpha * running_mean.detach() +
                (1 - alpha) * batch_mean)

model(test_data).sum().backward()
genesis.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)

input, target, criterion = genesis.ones(3, 2), genesis.zeros(3, 1), genesis.nn.MSELoss()
genesis.enable_autocast = True
with genesis.autocast():
    output = model(input)
    loss = criterion(output, target)
genesis.enable_autocast = False


# ---- 常见模式 ----
class Batch:
    def __init__(self, inputs, targets):
        self.inputs, self.targets = inputs, targets


class MyModel(genesis.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1, self.layer2, self.layer3 = (genesis.nn.Linear(2, 2) for _ in range(3))

    def forward(self, x):
        return self.layer3(self.layer2(self.layer1(x)))


num_epochs, dataloader = 3, [Batch(genesis.ones(4, 2), genesis.zeros(4, 2)) for _ in range(2)]
losses = []

model = MyModel()
optimizer = genesis.optim.Adam(model.parameters())
for epoch in range(num_epochs):
    for batch in dataloader:
        # 前向传播
        outputs = model(batch.inputs)
        loss = criterion(outputs, batch.targets)
        # 后向传播
        optimizer.zero_grad()
        loss.backward()
        # 更新权重
        optimizer.step()
        losses.append(loss.item())

# ---- 梯度检查点 ----
from genesis.utils.checkpoint import checkpoint


def forward(self, x):
    # 检查点中间计算
    x = checkpoint(self.layer1, x)
    x = checkpoint(self.layer2, x)
    return self.layer3(x)


forward(model, genesis.ones(4, 2)).sum().backward()

# ---- 调试 ----
from genesis.autograd import gradcheck


def func(x):
    return (x ** 2).sum()


x = genesis.tensor([1., 2., 3.], requires_grad=True)
checked = gradcheck(func, x, eps=1e-6) # 如果梯度正确返回True

# 打印计算图结构
y = x * 2 + 3
print(y.grad_fn) # <AddBackward>
print(y.grad_fn.next_functions) # 连接的操作

# ---- 性能提示 ----
x, y = genesis.ones(2), genesis.ones(2)
x.add_(y)
