"""Random matrices for the tests of linear algebra."""

import numpy as np


def draw(rng, shape, dtype):
    """Normal entries."""
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def regular(rng, shape, dtype):
    """Far from singular."""
    return draw(rng, shape, dtype) + 3 * np.eye(shape[-1], dtype=dtype)


def hermitian(rng, shape, dtype):
    """Hermitian, with different eigenvalues."""
    a = draw(rng, shape, dtype)
    return a + np.swapaxes(a, -1, -2).conj() + np.diag(np.arange(shape[-1])).astype(dtype)


def positive(rng, shape, dtype):
    """Hermitian and positive definite."""
    a = draw(rng, shape, dtype)
    return a @ np.swapaxes(a, -1, -2).conj() + np.eye(shape[-1], dtype=dtype)
