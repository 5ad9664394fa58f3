"""What a call across a bridge costs, beside the library's own: microseconds, medians of many calls.

python -m benchmarks.bridges
"""

import statistics
import time

import numpy as np

from morula import gradient
from morula.interop.scipy import hessp, jac


def microseconds(f, seconds=0.5):
    """The median time of a call, warm."""
    f()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        f()
        times.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(times)


def into_jax():
    import jax
    import jax.numpy as jnp

    from morula.interop.jax import to_jax

    x = jnp.ones(10)
    for name, how in (("eager", lambda f: f), ("under jit", jax.jit)):
        ours = how(jax.grad(to_jax(lambda x: np.sum(x * x))))
        theirs = how(jax.grad(lambda x: jnp.sum(x * x)))
        yield (
            f"jax.grad(to_jax(f)), {name}",
            lambda ours=ours: ours(x).block_until_ready(),
            lambda theirs=theirs: theirs(x).block_until_ready(),
        )


def torch_both_ways():
    import torch

    from morula.interop.torch import to_torch

    x = torch.ones(10)
    leaf = torch.ones(10, requires_grad=True)
    inside = to_torch(lambda x: np.sum(x * x))
    yield (
        "gradient of PyTorch's x.dot(x)",
        lambda: gradient(lambda x: torch.dot(x, x), x),
        lambda: torch.autograd.grad(torch.dot(leaf, leaf), leaf),
    )
    yield (
        "backward through to_torch(f)",
        lambda: torch.autograd.grad(inside(leaf), leaf),
        lambda: torch.autograd.grad(torch.sum(leaf * leaf), leaf),
    )


def for_scipy():
    from scipy.optimize import rosen, rosen_der, rosen_hess_prod

    def f(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0)

    x = np.linspace(0.5, 1.5, 10)
    slope, product = jac(f), hessp(f)
    assert np.allclose(slope(x), rosen_der(x))
    yield "jac(rosen), beside rosen_der", lambda: slope(x), lambda: rosen_der(x)
    yield (
        "hessp(rosen), beside rosen_hess_prod",
        lambda: product(x, x),
        lambda: rosen_hess_prod(x, x),
    )
    assert np.isclose(f(x), rosen(x))


def main():
    print(f"{'µs per call':42} {'Morula':>9} {'library':>9} {'ratio':>7}")
    for bridge in (into_jax, torch_both_ways, for_scipy):
        try:
            cases = list(bridge())
        except ImportError as error:
            print(f"{bridge.__name__}: {error}")
            continue
        for name, ours, theirs in cases:
            a, b = microseconds(ours), microseconds(theirs)
            print(f"{name:42} {a:9.1f} {b:9.1f} {a / b:7.1f}")


if __name__ == "__main__":
    main()
