"""Read handwritten digits: a two-layer network in plain NumPy and plain classes.

The network, the loss and the optimiser know nothing of Morula; one line asks for the gradient.
The data are the 1797 real digits that ship inside scikit-learn, 8 by 8 pixels each.

    python examples/digits.py [--epochs 30] [--seed 0] [--out examples/out]

prints the accuracy on digits that were not trained on, and saves a loss curve and a picture of
the digits that were read wrongly. It needs scikit-learn, matplotlib and tqdm, the extra "examples".
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from tqdm import tqdm

from morula import value_and_grad

HIDDEN = 128
BATCH = 32
RATE = 0.1
MOMENTUM = 0.9


class Dense:
    """An affine map of the last axis, (..., inputs) -> (..., outputs)."""

    def __init__(self, inputs, outputs, rng):
        self.w = rng.standard_normal((inputs, outputs)) * np.sqrt(2 / inputs)
        self.b = np.zeros(outputs)

    def __call__(self, x):
        return x @ self.w + self.b


class Network:
    """Dense layers with rectifiers between them; gives one score per class."""

    def __init__(self, sizes, rng):
        self.layers = [Dense(m, n, rng) for m, n in pairwise(sizes)]

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = np.maximum(layer(x), 0.0)
        return self.layers[-1](x)


def cross_entropy(network, images, labels):
    """Mean negative log-probability of the right label, in nats."""
    scores = network(images)
    scores = scores - scores.max(axis=1, keepdims=True)
    log_normaliser = np.log(np.exp(scores).sum(axis=1))
    return np.mean(log_normaliser - scores[np.arange(len(labels)), labels])


loss_and_gradient = value_and_grad(cross_entropy)  # by its first argument, the network


class Momentum:
    """Gradient descent with momentum; changes the layers of the network that it is given."""

    def __init__(self, network):
        self.velocities = [(0.0 * layer.w, 0.0 * layer.b) for layer in network.layers]

    def step(self, network, gradient, rate):
        """The gradient mirrors the network: gradient.layers[0].w belongs to network.layers[0].w."""
        for i, (layer, slope) in enumerate(zip(network.layers, gradient.layers, strict=True)):
            v_w, v_b = self.velocities[i]
            v_w = MOMENTUM * v_w - rate * slope.w
            v_b = MOMENTUM * v_b - rate * slope.b
            self.velocities[i] = v_w, v_b
            layer.w = layer.w + v_w
            layer.b = layer.b + v_b


def train(network, images, labels, epochs, rng):
    """Train in place with a rate that falls to zero; returns the mean loss of every epoch."""
    optimiser = Momentum(network)
    batches = range(0, len(labels), BATCH)
    steps = epochs * len(batches)
    done = 0
    curve = []
    with tqdm(total=steps, desc="training", unit="step") as bar:
        for _ in range(epochs):
            order = rng.permutation(len(labels))
            total = 0.0
            for start in batches:
                batch = order[start : start + BATCH]
                loss, gradient = loss_and_gradient(network, images[batch], labels[batch])
                optimiser.step(network, gradient, RATE * (1 - done / steps))
                total += float(loss) * len(batch)
                done += 1
                bar.update()
            curve.append(total / len(labels))
            bar.set_postfix(loss=f"{curve[-1]:.4f}")
    return curve


def save_curve(curve, path):
    """Draw the training loss, a point an epoch."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.semilogy(range(1, len(curve) + 1), curve, marker="o", markersize=3)
    axes.set_xlabel("epoch")
    axes.set_ylabel("mean cross-entropy (nats)")
    axes.set_title("Training loss")
    axes.grid(alpha=0.3, which="both")
    figure.savefig(path, dpi=150)


def save_mistakes(images, labels, guesses, path, most=24):
    """Draw the digits that were read wrongly, the first `most` of them, each with what it is."""
    wrong = np.flatnonzero(guesses != labels)
    shown = wrong[:most]
    columns = 6
    rows = max(1, -(-len(shown) // columns))
    figure = Figure(figsize=(1.4 * columns, 1.7 * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.flat:
        ax.axis("off")
    for ax, k in zip(axes.flat, shown, strict=False):
        ax.imshow(images[k].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.set_title(f"{labels[k]} read as {guesses[k]}", fontsize=9)
    figure.suptitle(f"Wrongly read: {len(wrong)} of {len(labels)}")
    figure.savefig(path, dpi=150)


def main():
    """Train, test, draw; see the head of this file."""
    parser = argparse.ArgumentParser(description="Train a two-layer network on real digits.")
    parser.add_argument("--epochs", type=int, default=30, help="passes over the data (30)")
    parser.add_argument("--seed", type=int, default=0, help="of the split, weights and batches (0)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(__file__).parent / "out",
        help="folder for the pictures (examples/out)",
    )
    options = parser.parse_args()
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")

    rng = np.random.default_rng(options.seed)
    digits = load_digits()
    images = digits.data / 16  # grey levels 0..16 -> 0..1
    labels = digits.target
    order = rng.permutation(len(labels))
    test, training = np.split(order, [len(order) // 4])

    network = Network([images.shape[1], HIDDEN, 10], rng)
    curve = train(network, images[training], labels[training], options.epochs, rng)

    guesses = network(images[test]).argmax(axis=1)
    options.out.mkdir(parents=True, exist_ok=True)
    save_curve(curve, options.out / "loss.png")
    save_mistakes(images[test], labels[test], guesses, options.out / "wrongly-read.png")
    print(f"pictures: {options.out / 'loss.png'}, {options.out / 'wrongly-read.png'}")
    print(f"test accuracy: {100 * np.mean(guesses == labels[test]):.1f} %")


if __name__ == "__main__":
    main()
