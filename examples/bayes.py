"""A variational autoencoder of handwritten digits (D. Kingma, M. Welling, 2014), with `genesis.distributions`.

An encoder says of each image which normal numbers may have made it, q(z | x); a decoder says which pixels they make,
p(x | z): counts from 0 to 16. Both learn to raise the bound E_q log p(x | z) - KL(q, prior) of the images' log probability,
for samples of q have gradients. The picture shows digits held out, what is made of their numbers, and digits made of
numbers of the prior.

    python examples/bayes.py [--compile] [--epochs 40] [--numbers 8] [--picture out/bayes.png]
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from training import options_of, report, train

import genesis
from genesis import distributions, nn, optim
from genesis.utils.data import DataLoader, TensorDataset

BATCH = 64
SEED = 0
MOST = 16  # of a pixel
SHOWN = 4


class Autoencoder(nn.Module):
    """Images (rows, 64) of counts, and `numbers` for each."""

    def __init__(self, numbers: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 2 * numbers))
        self.decoder = nn.Sequential(nn.Linear(numbers, 256), nn.ReLU(), nn.Linear(256, 64))
        self.prior = distributions.Independent(distributions.Normal(genesis.zeros(numbers), genesis.ones(numbers)), 1)

    def posterior(self, images: genesis.Tensor) -> distributions.Independent:
        """q(z | x)."""
        mean, deviation = self.encoder(images / MOST).chunk(2, dim=-1)
        return distributions.Independent(distributions.Normal(mean, nn.functional.softplus(deviation) + 1e-3), 1)

    def pixels(self, z: genesis.Tensor) -> distributions.Independent:
        """p(x | z)."""
        return distributions.Independent(distributions.Binomial(MOST, logits=self.decoder(z)), 1)

    def bound(self, images: genesis.Tensor) -> genesis.Tensor:
        """A lower bound of log p(x) of each image, by one sample."""
        posterior = self.posterior(images)
        likely = self.pixels(posterior.rsample()).log_prob(images)
        return likely - distributions.kl_divergence(posterior, self.prior)


def load() -> tuple[genesis.Tensor, genesis.Tensor]:
    """scikit-learn's images for training, and those held out."""
    images = load_digits().data.astype(np.float32)
    return tuple(map(genesis.tensor, train_test_split(images, test_size=0.2, random_state=SEED)))


@genesis.no_grad()
def drawn(model: Autoencoder, images: genesis.Tensor) -> list[tuple[np.ndarray, str, bool]]:
    """Some images, what the decoder makes of the means of their numbers, and of numbers of the prior."""
    again = model.pixels(model.posterior(images).mean).mean
    new = model.pixels(model.prior.sample((len(images),))).mean
    rows = (("held out", images), ("rebuilt", again), ("new", new))
    return [(image.reshape(8, 8), name, True) for name, row in rows for image in row.numpy()]


def main() -> None:
    parser = options_of(__doc__, "bayes")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--numbers", type=int, default=8, help="that make an image")
    options = parser.parse_args()

    genesis.manual_seed(SEED)
    images, held_out = load()
    loader = DataLoader(TensorDataset(images), batch_size=BATCH, shuffle=True, drop_last=True)
    model = Autoencoder(options.numbers)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)

    def step(batch: genesis.Tensor) -> genesis.Tensor:
        optimizer.zero_grad()
        loss = -model.bound(batch).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    @genesis.no_grad()
    def score(_: int) -> float:
        """The bound of those held out, in nats for each pixel: what they cost to encode, averaged over several samples."""
        return -float(np.mean([model.bound(held_out).mean().item() for _ in range(4)])) / 64

    step = genesis.compile(step) if options.compile else step
    training = train(step, [loader] * options.epochs, options.epochs * len(loader), score)
    report(training, "held-out loss", "nats a pixel", f"{BATCH}", options.picture, drawn(model, held_out[:SHOWN]))


if __name__ == "__main__":
    main()
