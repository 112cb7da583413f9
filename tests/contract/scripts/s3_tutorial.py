# ruff: noqa
# The code of the PyTorch autograd tutorial, in its order.
import genesis as torch

# creation需要梯度 张量
x = torch.tensor(2.0, requires_grad=True)
y = torch.tensor(3.0, requires_grad=True)

print(f"x: {x}, requires_grad: {x.requires_grad}")
print(f"y: {y}, requires_grad: {y.requires_grad}")

# 执行operation, 构建计算graph
z = x * y + x**2
print(f"z: {z}")

# 查看operationhistory
print(f"z.grad_fn: {z.grad_fn}")
print(f"z.grad_fn.next_functions: {z.grad_fn.next_functions}")

# 计算梯度
z.backward()

# 查看梯度
print(f"x.grad: {x.grad}")  # dz/dx = y + 2x = 3 + 4 = 7
print(f"y.grad: {y.grad}")  # dz/dy = x = 2

# 再次执行operation
z2 = x * y + x**2

# 直接计算梯度会累加之 before  梯度
z2.backward()
print(f"x.grad after second backward: {x.grad}")  # 7 + 7 = 14

# 清空梯度
torch.zero_grad()

# 重 new 计算梯度
z3 = x * y + x**2
z3.backward()
print(f"x.grad after zero_grad and third backward: {x.grad}")  # 7

x = torch.tensor(2.0, requires_grad=True)
y = x**2 + 2*x + 1

# y is 标量, 可以直接调用backward()
y.backward()
print(f"dy/dx at x=2: {x.grad}")  # 2x + 2 = 6

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x**2  # y is 张量, 形状 for (3,)

# providing梯度张量
y.backward(torch.tensor([1.0, 1.0, 1.0]))
print(f"dy/dx: {x.grad}")  # [2.0, 4.0, 6.0]

x = torch.tensor(2.0, requires_grad=True)

#  in no_grad() on  under 文management器in, 不会creation计算graph
with torch.no_grad():
    y = x * x
    print(f"y: {y}, requires_grad: {y.requires_grad}")  # False

# 直接调用detach()method, creation一个 and 原张量共享data但不需要梯度 张量
z = x.detach()
print(f"z: {z}, requires_grad: {z.requires_grad}")  # False

with torch.inference_mode():
    y = x * x
    print(f"y: {y}, requires_grad: {y.requires_grad}")  # False

class MyFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        #  before 向传播
        result = x ** 3
        # 保存需要 in 反向传播inusing 值
        ctx.save_for_backward(x)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        # 反向传播
        x, = ctx.saved_tensors
        # 计算梯度: d/dx(x^3) = 3x^2
        grad_x = 3 * x ** 2 * grad_output
        return grad_x

# using自定义Function
x = torch.tensor(2.0, requires_grad=True)
y = MyFunction.apply(x)
print(f"y: {y}")

# 计算梯度
y.backward()
print(f"x.grad: {x.grad}")  # 3*(2)^2 = 12

x = torch.tensor(2.0, requires_grad=True)

# 一阶导数
y = x**3
y.backward(create_graph=True)  # creation计算graph以support high 阶导数
print(f"一阶导数 dy/dx: {x.grad}")

# 二阶导数
grad_x = x.grad
x.grad.zero_()  # 清空梯度
grad_x.backward()
print(f"二阶导数 d²y/dx²: {x.grad}")

def f(x):
    return x**3 + 2*x**2 + 1

def grad_f(x):
    return 3*x**2 + 4*x

# creation张量
x = torch.tensor(2.0, requires_grad=True)
y = f(x)
y.backward()

# 自动微分计算 梯度
auto_grad = x.grad.item()
# 手动计算 梯度
manual_grad = grad_f(2.0)

print(f"自动微分梯度: {auto_grad}")
print(f"手动计算梯度: {manual_grad}")
print(f"误差: {abs(auto_grad - manual_grad)}")

# creation simple 神经network
model = torch.nn.Sequential(
    torch.nn.Linear(1, 10),
    torch.nn.ReLU(),
    torch.nn.Linear(10, 1)
)

# 定义损失function
loss_fn = torch.nn.MSELoss()

# creationdata
x_train = torch.randn(100, 1)
y_train = 2 * x_train + 1 + torch.randn(100, 1) * 0.1

# 训练model
learning_rate = 0.01

for epoch in range(100):
    #  before 向传播
    y_pred = model(x_train)

    # 计算损失
    loss = loss_fn(y_pred, y_train)

    # 反向传播
    loss.backward()

    # updateparameter
    with torch.no_grad():
        for param in model.parameters():
            param -= learning_rate * param.grad

    # 清空梯度
    model.zero_grad()

    # 打印损失
    if (epoch + 1) % 10 == 0:
        print(f"Epoch [{epoch+1}/100], Loss: {loss.item():.4f}")
