"""Random numbers fall on the elements in the order in which they lie in PyTorch's memory."""

import torch
import torch.nn.functional as F


def last(*shape):
    """Channels last, by a permuted view."""
    batch, channels, *extents = shape
    return torch.randn(batch, *extents, channels).permute(0, -1, *range(1, len(extents) + 1))


def heads():
    return torch.randn(2, 5, 3, 4).transpose(1, 2)


MADE = {
    "rows": lambda: torch.randn(4, 5, 6),
    "transposed": lambda: torch.randn(4, 5, 6).transpose(0, 1),
    "permuted": lambda: torch.randn(4, 5, 6).permute(2, 0, 1),
    "slice": lambda: torch.randn(4, 5, 6)[:, 1:3],
    "relu": lambda: torch.relu(torch.randn(4, 5, 6).transpose(0, 1)),
    "cast": lambda: torch.randn(4, 5).T.double().float(),
    "sum": lambda: torch.randn(4, 5, 6).transpose(0, 1) + torch.randn(6),
    "expanded": lambda: torch.randn(4, 1, 6).expand(4, 5, 6),
    "second": lambda: torch.randn(5, 4, 6) * torch.randn(4, 5, 6).transpose(0, 1),
    "copy": lambda: torch.randn(4, 5).T.clone(),
    "filled": lambda: torch.randn(4, 5).T.masked_fill(torch.ones(5, 4) > 2, 0),
    "row-major": lambda: torch.relu(torch.randn(4, 5).T).contiguous(),
    "flattened": lambda: torch.relu(torch.randn(4, 5, 6).transpose(0, 1)).flatten(1),
    "linear": lambda: F.linear(torch.randn(4, 5, 6).transpose(0, 1), torch.randn(7, 6)),
    "softmax": lambda: torch.softmax(torch.randn(4, 5, 6).transpose(0, 1), -1),
    "norm": lambda: F.layer_norm(torch.randn(4, 5).T, (4,)),
    "attention": lambda: F.scaled_dot_product_attention(heads(), heads(), heads()),
    "attention, joined": lambda: F.scaled_dot_product_attention(heads(), heads(), heads()).transpose(1, 2).reshape(2, 5, 12),
    "convolution": lambda: F.conv2d(last(2, 3, 4, 4), torch.randn(5, 3, 3, 3)),
    "batch norm": lambda: F.batch_norm(last(2, 3, 4, 4), None, None, training=True),
    "resized": lambda: F.interpolate(last(2, 3, 4, 4), scale_factor=2, mode="bilinear"),
    "pooled": lambda: F.max_pool2d(last(2, 3, 4, 4), 2),
    "joined": lambda: torch.cat([last(2, 3, 4, 4), last(2, 3, 4, 4)], 1),
    "mixed": lambda: torch.cat([last(2, 3, 4, 4), torch.randn(2, 3, 4, 4)], 1),
    "groups": lambda: F.group_norm(last(2, 4, 3, 3), 2),
    "padded": lambda: F.pad(last(2, 3, 4, 4), (1, 1)),
    "volume": lambda: F.max_pool3d(last(2, 3, 4, 4, 4), 2),
}
DRAWN = {
    "dropout": lambda x: F.dropout(x, 0.5) != 0,
    "uniform": torch.rand_like,
    "normal": torch.randn_like,
    "choices": lambda x: torch.randint_like(x, 9, memory_format=torch.preserve_format),
    "in place": lambda x: x.clone().uniform_(),
    "normal in place": lambda x: x.clone().normal_(2, 3),
    "trials": lambda x: x.clone().bernoulli_(0.3),
}
for name, make in MADE.items():
    for grad in (False, True):
        for draw, of in DRAWN.items():
            torch.manual_seed(0)
            x = make()
            if grad:
                x = x * torch.ones(1, requires_grad=True)
                if draw not in ("dropout", "normal"):
                    continue
            torch.manual_seed(1)
            weights = torch.arange(float(x.numel())).reshape(x.shape)
            print(name, grad, draw, round((of(x.detach() if draw != "dropout" else x) * weights).sum().item(), 1))
