"""Graph networks on sparse matrices: a convolution and an attention over edges, and what is asked of such matrices."""

import io

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

NODES, GROUPS = 60, 3
random = np.random.default_rng(0)
labels = torch.from_numpy(random.integers(0, GROUPS, NODES))
edges = random.integers(0, NODES, (2, 240))
features = torch.from_numpy(random.standard_normal((NODES, 8)).astype(np.float32)) + F.one_hot(labels, 8)


def normalized():
    adjacency = torch.sparse_coo_tensor(torch.from_numpy(edges), torch.ones(edges.shape[1]), (NODES, NODES))
    adjacency = (adjacency + adjacency.t()).coalesce()
    whole = torch.eye(NODES) + adjacency
    degrees = torch.diag(torch.sqrt(1 / whole.sum(1))).to_sparse()
    return (degrees @ whole @ degrees).to_sparse()


class Convolution(nn.Module):
    def __init__(self, inputs, outputs, seed):
        super().__init__()
        values = np.random.default_rng(seed).standard_normal((inputs, outputs)).astype(np.float32)
        self.kernel = nn.Parameter(torch.from_numpy(values) / inputs**0.5)

    def forward(self, x, adjacency):
        return torch.spmm(adjacency, torch.mm(x, self.kernel))


class Attention(Convolution):
    def __init__(self, inputs, outputs, seed):
        super().__init__(inputs, outputs, seed)
        self.scores = nn.Parameter(torch.linspace(-1, 1, 2 * outputs).reshape(2, outputs))

    def forward(self, x, adjacency):
        x = x @ self.kernel
        rows, columns = adjacency.indices()
        scores = F.leaky_relu((x[rows] * self.scores[0] + x[columns] * self.scores[1]).sum(1), 0.2)
        weights = torch.sparse_coo_tensor(adjacency.indices(), scores, adjacency.shape)
        return torch.sparse.mm(torch.sparse.softmax(weights, dim=1), x)


class Network(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.first, self.second = layer(8, 16, 1), layer(16, GROUPS, 2)

    def forward(self, x, adjacency):
        return F.log_softmax(self.second(F.relu(self.first(x, adjacency)), adjacency), dim=1)


adjacency = normalized()
print(adjacency.layout, adjacency.is_sparse, adjacency.is_coalesced(), adjacency._nnz(), adjacency.sparse_dim())
print(isinstance(adjacency, torch.Tensor), adjacency.layout == torch.sparse_coo, features.layout == torch.strided)
for layer in (Convolution, Attention):
    network = Network(layer)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02, weight_decay=5e-4)
    for epoch in range(30):
        optimizer.zero_grad()
        loss = F.nll_loss(network(features, adjacency)[:30], labels[:30])
        loss.backward()
        optimizer.step()
        if epoch % 10 == 9:
            print(layer.__name__, epoch, round(loss.item(), 4))
    with torch.no_grad():
        print((network(features, adjacency).argmax(1) == labels).float().mean().item())

old = torch.sparse.FloatTensor(torch.from_numpy(edges), torch.ones(edges.shape[1]), torch.Size([NODES, NODES]))
print(torch.sparse.sum(old).item(), torch.sparse.sum(old.float(), dim=1).to_dense()[:5], old[3].to_dense().sum().item())
rows = adjacency.to_sparse_csr()
print(rows.crow_indices()[:6], rows.col_indices()[:6], (rows @ features).sum().item(), (rows * 2).values().sum().item())
print(torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3)).requires_grad_())
file = io.BytesIO()
torch.save({"adjacency": adjacency, "rows": rows}, file)
file.seek(0)
read = torch.load(file)
print(torch.equal(read["adjacency"].to_dense(), adjacency.to_dense()), read["rows"].layout)
try:
    adjacency.numpy()
except TypeError:
    print("no array")
