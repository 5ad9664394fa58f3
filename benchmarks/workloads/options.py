"""Black-Scholes prices: one option in scalars, all five Greeks; and 1000 options in arrays."""

import math
from collections.abc import Callable
from importlib import import_module
from math import erf, exp, log, sqrt
from typing import Any

import numpy as np

from benchmarks.case import ARRAY, SCALAR, Array, Case
from benchmarks.peers import standard

ALL = (0, 1, 2, 3, 4)
Five = tuple[float, float, float, float, float]


def make_inputs() -> Five:
    return 105.0, 100.0, 0.5, 0.03, 0.25


def cdf(x):
    return 0.5 * (1.0 + math.erf(x / math.sqrt(2.0)))


def primal(S, K, T, r, sigma):
    d1 = (math.log(S / K) + (r + 0.5 * sigma**2) * T) / (sigma * math.sqrt(T))
    d2 = d1 - sigma * math.sqrt(T)
    return S * cdf(d1) - K * math.exp(-r * T) * cdf(d2)


def by_hand(S: float, K: float, T: float, r: float, sigma: float) -> Five:
    root = sqrt(T)
    v = sigma * root
    drift = r + 0.5 * sigma * sigma
    d1 = (log(S / K) + drift * T) / v
    d2 = d1 - v
    D = exp(-r * T)
    N1 = 0.5 + 0.5 * erf(0.7071067811865476 * d1)
    DN2 = D * (0.5 + 0.5 * erf(0.7071067811865476 * d2))
    d2̄ = -0.3989422804014327 * K * D * exp(-0.5 * d2 * d2)
    d1̄ = 0.3989422804014327 * S * exp(-0.5 * d1 * d1) + d2̄
    n̄ = d1̄ / v  # of the numerator of d1
    v̄ = -d2̄ - n̄ * d1
    D̄ = K * DN2  # times D
    return (
        N1 + n̄ / S,
        -DN2 - n̄ / K,
        n̄ * drift + 0.5 * v̄ * sigma / root + r * D̄,
        (n̄ + D̄) * T,
        n̄ * sigma * T + v̄ * root,
    )


def greeks(S: float, K: float, T: float, r: float, sigma: float) -> Five:
    """The closed forms, which use that S φ(d1) = K exp(-r T) φ(d2): not the program's adjoint."""
    root = sqrt(T)
    v = sigma * root
    d1 = (log(S / K) + (r + 0.5 * sigma * sigma) * T) / v
    N1 = 0.5 + 0.5 * erf(0.7071067811865476 * d1)
    DN2 = exp(-r * T) * (0.5 + 0.5 * erf(0.7071067811865476 * (d1 - v)))
    vega = 0.3989422804014327 * S * root * exp(-0.5 * d1 * d1)
    return N1, -DN2, 0.5 * vega * sigma / T + r * K * DN2, K * T * DN2, vega


def make_inputs_of_many() -> tuple[Array, Array, Array, float, Array]:
    rng = np.random.default_rng(0)
    S, K = rng.uniform(80, 120, 1000), rng.uniform(80, 120, 1000)
    return S, K, rng.uniform(0.1, 2, 1000), 0.03, rng.uniform(0.1, 0.5, 1000)


def cdf_of_many(x):
    """The usual approximation by tanh, within 0.0002."""
    return 0.5 * (1.0 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def primal_of_many(S, K, T, r, sigma):
    v = sigma * np.sqrt(T)
    d1 = (np.log(S / K) + (r + 0.5 * sigma * sigma) * T) / v
    d2 = d1 - v
    return np.sum(S * cdf_of_many(d1) - K * np.exp(-r * T) * cdf_of_many(d2))


def by_hand_of_many(S: Array, K: Array, T: Array, r: float, sigma: Array) -> tuple[Array, Array]:
    root = np.sqrt(T)
    v = sigma * root
    σT = sigma * T
    D = r * T
    d1 = S / K
    np.log(d1, out=d1)
    d1 += D
    d1 += 0.5 * sigma * σT
    d1 /= v
    d2 = d1 - v
    np.negative(D, out=D)
    np.exp(D, out=D)
    D *= K
    S̄, n̄ = cdf_and_slope(d1)
    σ̄ = slope(d2)
    σ̄ *= D  # the cotangent of d2, but for its sign
    n̄ *= S
    n̄ -= σ̄
    n̄ /= v  # of the numerator of d1
    d1 *= n̄
    σ̄ -= d1  # of v
    σ̄ *= root
    σT *= n̄
    σ̄ += σT
    n̄ /= S
    S̄ += n̄
    return S̄, σ̄


def cdf_and_slope(x: Array) -> tuple[Array, Array]:
    """The approximate cdf and its derivative (1 - t²) (a + 3 b x²) / 2, t = tanh(a x + b x³)."""
    q = x * x
    t = 0.035677408136300125 * q
    t += 0.7978845608028654
    t *= x
    np.tanh(t, out=t)
    s = t * t
    np.subtract(1.0, s, out=s)
    q *= 0.05351611220445019
    q += 0.3989422804014327
    s *= q
    t += 1.0
    t *= 0.5
    return t, s


def slope(x: Array) -> Array:
    """The derivative alone: where nobody differentiates by the strike, its cdf is not needed."""
    q = x * x
    t = 0.035677408136300125 * q
    t += 0.7978845608028654
    t *= x
    np.tanh(t, out=t)
    t *= t
    np.subtract(1.0, t, out=t)
    q *= 0.05351611220445019
    q += 0.3989422804014327
    t *= q
    return t


def spelled(np: Any, erf: Callable[[Any], Any]) -> Callable[..., Any]:
    def cdf(x):
        return 0.5 * (1.0 + erf(x / math.sqrt(2.0)))

    def primal(S, K, T, r, sigma):
        d1 = (np.log(S / K) + (r + 0.5 * sigma**2) * T) / (sigma * np.sqrt(T))
        d2 = d1 - sigma * np.sqrt(T)
        return S * cdf(d1) - K * np.exp(-r * T) * cdf(d2)

    return primal


def spelled_in_numpy(np: Any) -> Callable[..., Any]:
    """`np` is `autograd.numpy` or `jax.numpy`: erf is in the SciPy beside it."""
    special = import_module(np.__name__.replace("numpy", "scipy.special"))
    return spelled(np, special.erf)


def spelled_in_torch(torch: Any) -> Callable[..., Any]:
    return spelled(torch, torch.erf)


def spelled_for_many(np: Any) -> Callable[..., Any]:
    def cdf(x):
        return 0.5 * (1.0 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))

    def primal(S, K, T, r, sigma):
        v = sigma * np.sqrt(T)
        d1 = (np.log(S / K) + (r + 0.5 * sigma * sigma) * T) / v
        d2 = d1 - v
        return np.sum(S * cdf(d1) - K * np.exp(-r * T) * cdf(d2))

    return primal


CASES = [
    Case(
        "Black-Scholes scalar",
        SCALAR,
        make_inputs,
        primal,
        by_hand,
        argnums=ALL,
        peers=standard(spelled_in_numpy, spelled_in_torch, ALL),
        variants={"closed-form Greeks": greeks},
        step=1e-4,
    ),
    Case(
        "Black-Scholes 1000",
        ARRAY,
        make_inputs_of_many,
        primal_of_many,
        by_hand_of_many,
        argnums=(0, 4),
        peers=standard(spelled_for_many, spelled_for_many, (0, 4)),
        step=1e-4,
    ),
]
