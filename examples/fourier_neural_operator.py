"""A Fourier neural operator that learns the heat equation (Z. Li et al., "Fourier neural operator", 2021).

Heat on a square whose edges meet spreads by u_t = v (u_xx + u_yy): of the Fourier transform of u, frequency k shrinks by
exp(-v k^2 t), which makes the examples. The network sees fields before and after, and mixes channels at low frequencies by
complex weights. These know of no grid, so the fields that it is scored by may be twice as fine as those that it has learned
from. The picture shows such fields before, after, and as the network has them after.

    python examples/fourier_neural_operator.py [--compile] [--epochs 10] [--width 16] [--picture out/heat.png]
"""

from __future__ import annotations

from training import options_of, report, train

import genesis
from genesis import fft, nn, optim
from genesis.utils.data import DataLoader, TensorDataset

BATCH = 16
SEED = 0
GRID = 32  # places along an edge
MODES = 8  # frequencies along an axis, of either sign, that the network mixes
SPREAD = 0.04  # v t
SHOWN = 2


class SpectralConvolution(nn.Module):
    """A convolution as wide as the field: channels (batch, width, n, n) mixed, at each low frequency by a matrix of its own."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(genesis.randn(width, width, 2 * MODES, MODES, dtype=genesis.complex64) / width)

    def forward(self, x: genesis.Tensor) -> genesis.Tensor:
        batch, width, *places = x.shape
        spectrum = fft.rfft2(x)[..., :MODES]
        low = genesis.cat([spectrum[:, :, :MODES], spectrum[:, :, -MODES:]], 2)
        mixed = genesis.einsum("bixy,ioxy->boxy", low, self.weight)
        high = mixed.new_zeros(batch, width, places[0] - 2 * MODES, MODES)
        return fft.irfft2(genesis.cat([mixed[:, :, :MODES], high, mixed[:, :, MODES:]], 2), s=places)


class Operator(nn.Module):
    """Fields (batch, n, n) of any n from 2 * MODES on, to such fields."""

    def __init__(self, width: int, layers: int = 3) -> None:
        super().__init__()
        self.lift = nn.Conv2d(1, width, 1)
        self.spectral = nn.ModuleList([SpectralConvolution(width) for _ in range(layers)])
        self.local = nn.ModuleList([nn.Conv2d(width, width, 1) for _ in range(layers)])
        self.project = nn.Conv2d(width, 1, 1)

    def forward(self, field: genesis.Tensor) -> genesis.Tensor:
        x = self.lift(field.unsqueeze(1))
        for spectral, local in zip(self.spectral, self.local, strict=True):
            x = nn.functional.gelu(spectral(x) + local(x))
        return self.project(x).squeeze(1)


@genesis.no_grad()
def heat(count: int, places: int) -> tuple[genesis.Tensor, genesis.Tensor]:
    """Smooth random fields (count, places, places), and what becomes of them."""
    along, across = fft.fftfreq(places, 1 / places), fft.rfftfreq(places, 1 / places)
    square = along.unsqueeze(1) ** 2 + across**2
    smooth = genesis.where(square < (GRID // 2) ** 2, 1 / (9 + square), 0.0) * (square > 0)
    spectrum = fft.rfft2(genesis.randn(count, places, places)) * smooth
    before = fft.irfft2(spectrum)
    size = before.square().mean((1, 2), keepdim=True).sqrt()
    after = fft.irfft2(spectrum * (-SPREAD * square).exp())
    return before / size, after / size


def error(found: genesis.Tensor, wanted: genesis.Tensor) -> genesis.Tensor:
    """The relative error of fields, on average."""
    return ((found - wanted).square().sum((1, 2)) / wanted.square().sum((1, 2))).sqrt().mean()


def main() -> None:
    parser = options_of(__doc__, "heat")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--fields", type=int, default=512, help="to learn from")
    parser.add_argument("--width", type=int, default=16, help="channels of the network")
    options = parser.parse_args()

    genesis.manual_seed(SEED)
    loader = DataLoader(TensorDataset(*heat(options.fields, GRID)), batch_size=BATCH, shuffle=True, drop_last=True)
    before, after = heat(32, 2 * GRID)
    model = Operator(options.width)
    steps = options.epochs * len(loader)
    optimizer = optim.Adam(model.parameters(), lr=4e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)

    def step(field: genesis.Tensor, wanted: genesis.Tensor) -> genesis.Tensor:
        optimizer.zero_grad()
        loss = error(model(field), wanted)
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss.detach()

    @genesis.no_grad()
    def score(_: int) -> float:
        return error(model(before), after).item()

    step = genesis.compile(step) if options.compile else step
    training = train(step, [loader] * options.epochs, steps, score)
    with genesis.no_grad():
        rows = ("before", before), ("after", after), ("learned", model(before[:SHOWN]))
    images = [(row[place].numpy(), name, True) for place in range(SHOWN) for name, row in rows]
    report(training, "held-out loss", f"of the heat, on a grid of {2 * GRID} x {2 * GRID}", f"{BATCH}", options.picture, images)


if __name__ == "__main__":
    main()
