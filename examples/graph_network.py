"""A graph network that finds the groups of a graph whose names few nodes know.

Nodes have neighbours in their own group mostly, and features that tell little. A graph convolution (T. Kipf, M. Welling,
"Semi-supervised classification with graph convolutional networks", 2017) averages what neighbours have, by a product with a
sparse matrix. With `--attention` each node weighs its neighbours (P. Velickovic et al., "Graph attention networks", 2018), by a
softmax over the elements of that matrix. The picture shows the graph's matrix, nodes in no order and in that of their groups.

    python examples/graph_network.py [--compile] [--attention] [--epochs 100] [--picture out/graph.png]
"""

from __future__ import annotations

from training import options_of, report, train

import genesis
from genesis import nn, optim, sparse

SEED = 0
GROUPS = 5
FEATURES = 32
NEIGHBOURS = 10  # of a node, on average
WITHIN = 0.8  # of them, in its own group
KNOWN = 20  # nodes of each group whose name is known
PIXELS = 100


class Convolution(nn.Module):
    """Nodes (n, inputs) to (n, outputs): the average over neighbours, normalized by the degrees of both."""

    def __init__(self, adjacency: genesis.Tensor, inputs: int, outputs: int) -> None:
        super().__init__()
        self.inner = nn.Linear(inputs, outputs)
        (rows, columns), degrees = adjacency.indices(), sparse.sum(adjacency, 1).to_dense()
        shares = (degrees[rows] * degrees[columns]) ** -0.5
        average = genesis.sparse_coo_tensor(adjacency.indices(), shares, adjacency.shape, is_coalesced=True)
        self.register_buffer("average", average)

    def forward(self, nodes: genesis.Tensor) -> genesis.Tensor:
        return self.average @ self.inner(nodes)


class Attention(nn.Module):
    """Nodes (n, inputs) to (n, outputs): the average over neighbours, by weights that depend on both."""

    def __init__(self, adjacency: genesis.Tensor, inputs: int, outputs: int) -> None:
        super().__init__()
        self.inner = nn.Linear(inputs, outputs)
        self.asking, self.asked = nn.Linear(outputs, 1), nn.Linear(outputs, 1, bias=False)
        self.register_buffer("adjacency", adjacency)

    def forward(self, nodes: genesis.Tensor) -> genesis.Tensor:
        nodes, positions = self.inner(nodes), self.adjacency.indices()
        scores = self.asking(nodes)[positions[0], 0] + self.asked(nodes)[positions[1], 0]
        scores = nn.functional.leaky_relu(scores, 0.2)
        weights = genesis.sparse_coo_tensor(positions, scores, self.adjacency.shape, is_coalesced=True)
        return sparse.softmax(weights, 1) @ nodes


def graph(count: int) -> tuple[genesis.Tensor, genesis.Tensor, genesis.Tensor]:
    """A sparse matrix (count, count) of ones, features (count, FEATURES) and groups (count,) of nodes."""
    groups = genesis.randint(0, GROUPS, (count,))
    edges = genesis.randint(0, count, (2, count * NEIGHBOURS * GROUPS))
    same = groups[edges[0]] == groups[edges[1]]
    odds = genesis.where(same, WITHIN, (1 - WITHIN) / (GROUPS - 1)) / 2
    edges = edges[:, genesis.rand(edges.shape[1]) < odds]
    both = genesis.cat([edges, edges.flip(0), genesis.arange(count).expand(2, count)], 1)  # and each is its own neighbour
    matrix = genesis.sparse_coo_tensor(both, genesis.ones(both.shape[1]), (count, count)).coalesce()
    matrix = genesis.sparse_coo_tensor(matrix.indices(), genesis.ones(matrix._nnz()), matrix.shape, is_coalesced=True)
    features = nn.functional.one_hot(groups, FEATURES) + genesis.randn(count, FEATURES)
    return matrix, features, groups


def drawn(matrix: genesis.Tensor, order: genesis.Tensor) -> genesis.Tensor:
    """How dense the parts of a matrix are, rows and columns in this order."""
    positions = order.argsort()[matrix.indices()] * PIXELS // matrix.shape[0]
    return -genesis.sparse_coo_tensor(positions, matrix.values(), (PIXELS, PIXELS)).to_dense()


def main() -> None:
    parser = options_of(__doc__, "graph")
    parser.add_argument("--attention", action="store_true", help="weigh neighbours by what they have")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=3000)
    parser.add_argument("--width", type=int, default=32)
    options = parser.parse_args()

    genesis.manual_seed(SEED)
    matrix, features, groups = graph(options.nodes)
    known = genesis.cat([(groups == group).nonzero()[:KNOWN, 0] for group in range(GROUPS)])
    others = genesis.ones(options.nodes, dtype=genesis.bool).index_fill(0, known, False)
    layer = Attention if options.attention else Convolution
    model = nn.Sequential(
        layer(matrix, FEATURES, options.width), nn.ReLU(), nn.Dropout(0.5), layer(matrix, options.width, GROUPS))
    optimizer = optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-3)

    def step(nodes: genesis.Tensor, names: genesis.Tensor) -> genesis.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(nodes)[known], names)
        loss.backward()
        optimizer.step()
        return loss.detach()

    @genesis.no_grad()
    def score(_: int) -> float:
        found = model.eval()(features).argmax(1)
        model.train()
        return (found == groups)[others].float().mean().item()

    step = genesis.compile(step) if options.compile else step
    training = train(step, [[(features, groups[known])]] * options.epochs, options.epochs, score)
    with genesis.no_grad():
        found = model.eval()(features).argmax(1)
    orders = ("no order", genesis.arange(options.nodes)), ("groups found", found.argsort()), ("groups", groups.argsort())
    images = [(drawn(matrix, order).numpy(), name, True) for name, order in orders]
    note = f"of the nodes whose group was not known, {matrix._nnz()} edges"
    report(training, "accuracy", note, f"{options.nodes} nodes", options.picture, images)


if __name__ == "__main__":
    main()
