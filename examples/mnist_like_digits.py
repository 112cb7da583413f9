"""Classify handwritten digits of 28x28 pixels: 784-512-512-10, batches of 128, Adam.

The images are scikit-learn's 1,797 digits of 8x8 pixels, enlarged, turned, shifted and blurred anew for each copy; those
held out come from writers' digits that training never sees.

    python examples/mnist_like_digits.py [--compile] [--epochs 6] [--copies 20] [--picture out/mnist_like_digits.png]
"""

from __future__ import annotations

import numpy as np
from plots import shown
from scipy import ndimage
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from training import options_of, report, train

import genesis
from genesis import nn, optim
from genesis.utils.data import DataLoader, TensorDataset

BATCH = 128
SIDE = 28
SEED = 0


def enlarged(small: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(8, 8) pixels in [0, 16] -> (28, 28) in [0, 1], a little turned, scaled, sheared and shifted."""
    turn, shear = random.normal(scale=0.12), random.normal(scale=0.1)
    scale = np.diag(random.uniform(0.34, 0.42, size=2))
    matrix = scale @ np.array([[np.cos(turn), np.sin(turn) + shear], [-np.sin(turn), np.cos(turn)]])
    centre = np.array([3.5, 3.5]) - matrix @ (np.array([SIDE, SIDE]) / 2 - 0.5 + random.normal(scale=0.7, size=2))
    return np.clip(ndimage.affine_transform(small / 16, matrix, centre, (SIDE, SIDE), order=1), 0, 1).astype(np.float32)


def load(copies: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training images (rows, 784) and labels, then those held out."""
    digits, random = load_digits(), np.random.default_rng(SEED)
    train, test, train_y, test_y = train_test_split(
        digits.images, digits.target, test_size=0.2, random_state=SEED, stratify=digits.target
    )
    train_x = np.stack([enlarged(image, random) for _ in range(copies) for image in train])
    test_x = np.stack([enlarged(image, random) for image in test])
    return train_x.reshape(-1, SIDE * SIDE), np.tile(train_y, copies), test_x.reshape(-1, SIDE * SIDE), test_y


def main() -> None:
    parser = options_of(__doc__, "mnist_like_digits")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--copies", type=int, default=20, help="of each training image, every one distorted in its own way")
    options = parser.parse_args()

    genesis.manual_seed(SEED)
    train_x, train_y, test_x, test_y = load(options.copies)
    held_out = genesis.tensor(test_x), genesis.tensor(test_y)
    loader = DataLoader(
        TensorDataset(genesis.tensor(train_x), genesis.tensor(train_y)), batch_size=BATCH, shuffle=True, drop_last=True
    )
    model = nn.Sequential(
        nn.Linear(SIDE * SIDE, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 512), nn.ReLU(), nn.Dropout(0.1),
        nn.Linear(512, 10),
    )
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs * len(loader))

    def step(images: genesis.Tensor, labels: genesis.Tensor) -> genesis.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss.detach()

    def guesses() -> genesis.Tensor:
        model.eval()
        with genesis.no_grad():
            found = model(held_out[0]).argmax(dim=1)
        model.train()
        return found

    def accuracy(_: int) -> float:
        return (guesses() == held_out[1]).float().mean().item()

    step = genesis.compile(step) if options.compile else step
    training = train(step, [loader] * options.epochs, options.epochs * len(loader), accuracy)
    some = shown(test_x[:12].reshape(-1, SIDE, SIDE), test_y[:12], guesses().numpy()[:12], range(10))
    report(training, "test accuracy", f"({len(test_y)} images held out)", f"{BATCH}", options.picture, some)


if __name__ == "__main__":
    main()
