import genesis

x = genesis.tensor([[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]] * 5)
w = genesis.tensor([[0.5, 1.0, -1.0, 0.25, -0.5]] * 6, requires_grad=True)
y = (x @ w).tanh().sum()
y.backward()
print(w.grad)
