"""The same loss by NumPy, and by JAX on the device that it has: three gradients, as ratios.

python -m benchmarks.device

`morula.grad` of the program in NumPy, `jax.jit(morula.grad(f))` and `jax.jit(jax.grad(f))` of the
same program in `jax.numpy`, at growing sizes. All agree, which is asked first. The device is the
default one of JAX's (`JAX_PLATFORMS` chooses); NumPy's is the processor.
"""

import jax
import jax.numpy as jnp
import numpy as np

import morula
from benchmarks.bridges import microseconds

SIZES = (64, 256, 1024)
BATCH = 256


def loss_by(m):
    """The mean square of a network with one hidden layer, in the functions of `m`."""

    def loss(w, v, x, y):
        return m.mean((m.tanh(x @ w) @ v - y) ** 2)

    return loss


def sides(n):
    """Three functions that compute the gradient by both weights."""
    draw = np.random.default_rng(0)
    w, v = draw.normal(size=(n, n)) / n**0.5, draw.normal(size=n) / n**0.5
    x, y = draw.normal(size=(BATCH, n)), draw.normal(size=BATCH)
    args = [a.astype(np.float32) for a in (w, v, x, y)]
    moved = [jnp.asarray(a) for a in args]
    by_numpy = morula.grad(loss_by(np), argnums=(0, 1))
    by_both = jax.jit(morula.grad(loss_by(jnp), argnums=(0, 1)))
    by_jax = jax.jit(jax.grad(loss_by(jnp), argnums=(0, 1)))
    return (
        lambda: by_numpy(*args),
        lambda: jax.block_until_ready(by_both(*moved)),
        lambda: jax.block_until_ready(by_jax(*moved)),
    )


def main():
    device = jax.devices()[0]
    print(f"JAX {jax.__version__} on {device.platform}: {device.device_kind}, float32")
    print(f"{'n':>6} {'jax.grad, µs':>14} {'jit(morula.grad)':>18} {'NumPy':>8}  (times jax.grad)")
    for n in SIZES:
        by_numpy, by_both, by_jax = sides(n)
        for ours in (by_numpy, by_both):
            for g, want in zip(ours(), by_jax(), strict=True):
                np.testing.assert_allclose(g, want, rtol=1e-2, atol=1e-4)
        a, b, c = microseconds(by_numpy, by_both, by_jax)
        print(f"{n:6} {c:14.1f} {b / c:18.2f} {a / c:8.2f}", flush=True)


if __name__ == "__main__":
    main()
