"""Five bodies, ten leapfrog steps, on lists that are built, never changed; gradient by places."""

import math
import random
from collections.abc import Callable
from math import sqrt
from typing import Any

from benchmarks.case import SCALAR, Call, Case, Peer
from benchmarks.peers import in_autograd, in_jax, in_torch

Points = list[list[float]]
Pull = tuple[int, float, float, float, float, float]  # j, direction, squared distance, weight


def make_inputs() -> tuple[Points, Points, list[float], int, float]:
    rng = random.Random(0)
    positions = [[rng.uniform(-1, 1) for _ in range(3)] for _ in range(5)]
    velocities = [[rng.uniform(-0.3, 0.3) for _ in range(3)] for _ in range(5)]
    return positions, velocities, [1.0, 0.5, 0.3, 0.8, 0.2], 10, 0.02


def acceleration(i, positions, masses):
    x, y, z = positions[i]
    ax = ay = az = 0.0
    for j, (xj, yj, zj) in enumerate(positions):
        if j != i:
            dx, dy, dz = xj - x, yj - y, zj - z
            d2 = dx * dx + dy * dy + dz * dz + 0.01
            w = masses[j] / (d2 * math.sqrt(d2))
            ax += w * dx
            ay += w * dy
            az += w * dz
    return [ax, ay, az]


def moved(points, rates, h):
    return [
        [x + h * u, y + h * v, z + h * w]
        for (x, y, z), (u, v, w) in zip(points, rates)  # noqa: B905
    ]


def primal(positions, velocities, masses, steps, h):
    n = len(masses)
    forces = [acceleration(i, positions, masses) for i in range(n)]
    for _ in range(steps):
        velocities = moved(velocities, forces, 0.5 * h)
        positions = moved(positions, velocities, h)
        forces = [acceleration(i, positions, masses) for i in range(n)]
        velocities = moved(velocities, forces, 0.5 * h)
    energy = 0.0
    for m, (u, v, w) in zip(masses, velocities):  # noqa: B905
        energy += 0.5 * m * (u * u + v * v + w * w)
    return energy


def pulls(positions: Points, masses: list[float]) -> tuple[Points, list[list[Pull]]]:
    """The accelerations, and of each body the pulls of the others."""
    forces, tape = [], []
    for i, (x, y, z) in enumerate(positions):
        ax = ay = az = 0.0
        kept = []
        for j, (xj, yj, zj) in enumerate(positions):
            if j != i:
                dx, dy, dz = xj - x, yj - y, zj - z
                d2 = dx * dx + dy * dy + dz * dz + 0.01
                w = masses[j] / (d2 * sqrt(d2))
                kept.append((j, dx, dy, dz, d2, w))
                ax += w * dx
                ay += w * dy
                az += w * dz
        tape.append(kept)
        forces.append([ax, ay, az])
    return forces, tape


def pull_back(tape: list[list[Pull]], ā: Points, x̄: Points) -> None:
    """Add to x̄ what the accelerations' ā give: w (ā - 3 (ā·d) d / d²), and minus it for i."""
    for (u, v, w), kept, own in zip(ā, tape, x̄, strict=True):
        x = y = z = 0.0
        for j, dx, dy, dz, d2, weight in kept:
            q = 3.0 * (u * dx + v * dy + w * dz) / d2
            a, b, c = weight * (u - q * dx), weight * (v - q * dy), weight * (w - q * dz)
            other = x̄[j]
            other[0] += a
            other[1] += b
            other[2] += c
            x += a
            y += b
            z += c
        own[0] -= x
        own[1] -= y
        own[2] -= z


def by_hand(
    positions: Points, velocities: Points, masses: list[float], steps: int, h: float
) -> Points:
    forces, first = pulls(positions, masses)
    tapes = []
    for _ in range(steps):
        velocities = moved(velocities, forces, 0.5 * h)
        positions = moved(positions, velocities, h)
        forces, tape = pulls(positions, masses)
        tapes.append(tape)
        velocities = moved(velocities, forces, 0.5 * h)
    v̄ = [[m * u, m * v, m * w] for m, (u, v, w) in zip(masses, velocities, strict=True)]
    x̄ = [[0.0, 0.0, 0.0] for _ in masses]
    k = 0.5 * h
    for tape in reversed(tapes):
        # The last kick is half a step; those before are two halves with one acceleration.
        pull_back(tape, [[k * u, k * v, k * w] for u, v, w in v̄], x̄)
        v̄ = moved(v̄, x̄, h)
        k = h
    k = 0.5 * h
    pull_back(first, [[k * u, k * v, k * w] for u, v, w in v̄], x̄)
    return x̄


def spelled(np: Any) -> Callable[..., Any]:
    """Arrays of shape (5, 3): with these tools nobody would go body by body."""

    def accelerations(positions, masses):
        d = positions[None, :, :] - positions[:, None, :]
        d2 = np.sum(d * d, axis=2) + 0.01
        return np.sum((masses / (d2 * np.sqrt(d2)))[:, :, None] * d, axis=1)

    def primal(positions, velocities, masses, steps, h):
        forces = accelerations(positions, masses)
        for _ in range(steps):
            velocities = velocities + 0.5 * h * forces
            positions = positions + h * velocities
            forces = accelerations(positions, masses)
            velocities = velocities + 0.5 * h * forces
        return 0.5 * np.sum(masses * np.sum(velocities * velocities, axis=1))

    return primal


def on_arrays(*inputs: Any) -> tuple[Any, ...]:
    import numpy as np

    positions, velocities, masses, steps, h = inputs
    return np.array(positions), np.array(velocities), np.array(masses), steps, h


def autograd(*inputs: Any) -> Call:
    import autograd.numpy

    return in_autograd(spelled(autograd.numpy), on_arrays(*inputs))


def torch(*inputs: Any) -> Call:
    import torch

    return in_torch(spelled(torch), on_arrays(*inputs))


def jax(*inputs: Any) -> Call:
    import jax.numpy

    return in_jax(spelled(jax.numpy), on_arrays(*inputs))


def jax_jit(*inputs: Any) -> Call:
    import jax.numpy

    return in_jax(spelled(jax.numpy), on_arrays(*inputs), jit=True)


PEERS: dict[str, Peer] = {"autograd": autograd, "torch": torch, "jax": jax, "jax.jit": jax_jit}

CASES = [
    Case("n-body on lists", SCALAR, make_inputs, primal, by_hand, peers=PEERS, step=1e-4),
]
