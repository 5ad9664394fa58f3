"""What a call across a bridge costs, beside the library's own: microseconds, medians of many calls.

python -m benchmarks.bridges

Both sides compute the same, which is asked first, and are timed by turns, after a first call of
each: what is compiled has been compiled. "Library" is the shortest way to the same number there.
"""

import statistics
import time
import warnings

import numpy as np

from morula import gradient
from morula.interop.scipy import hessp, jac

ROUNDS = 10
SECONDS = 0.05  # of each side, in each round


def microseconds(*sides):
    """The median time of a call of each, warm."""
    times = [[] for _ in sides]
    for _ in range(ROUNDS):
        for f, found in zip(sides, times, strict=True):
            end = time.perf_counter() + SECONDS
            while True:
                begin = time.perf_counter()
                f()
                now = time.perf_counter()
                found.append(now - begin)
                if now > end:
                    break
    return [1e6 * statistics.median(found) for found in times]


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


def jax_inside():
    import jax
    import jax.numpy as jnp

    x = jnp.ones(10)
    square = jax.jit(lambda x: jnp.dot(x, x))
    compiled = jax.jit(jax.grad(square))
    yield (
        "gradient of a jitted function",
        lambda: gradient(lambda x: square(x), x)[0].block_until_ready(),
        lambda: compiled(x).block_until_ready(),
    )


def torch_both_ways():
    import torch

    from morula.interop.torch import to_torch

    x = torch.ones(10)
    leaf = torch.ones(10, requires_grad=True)
    inside = to_torch(lambda x: np.sum(x * x))
    yield (
        "gradient of PyTorch's x.dot(x)",
        lambda: gradient(lambda x: torch.dot(x, x), x)[0],
        lambda: torch.autograd.grad(torch.dot(leaf, leaf), leaf)[0],
    )
    yield (
        "backward through to_torch(f)",
        lambda: torch.autograd.grad(inside(leaf), leaf)[0],
        lambda: torch.autograd.grad(torch.dot(leaf, leaf), leaf)[0],
    )


def into_casadi():
    import casadi

    from morula.interop.casadi import to_casadi

    x = casadi.MX.sym("x", 10)
    point = casadi.DM(np.ones(10))
    inside = to_casadi(lambda x: np.sum(x * x), 10)
    ours = casadi.Function("ours", [x], [casadi.gradient(inside(x), x)])
    theirs = casadi.Function("theirs", [x], [casadi.gradient(casadi.dot(x, x), x)])
    yield "casadi.gradient of to_casadi(f)", lambda: ours(point), lambda: theirs(point)


def into_pytensor():
    import pytensor
    import pytensor.tensor as pt

    from morula.interop.pytensor import to_pytensor

    x, point = pt.dvector("x"), np.ones(10)
    inside = to_pytensor(lambda x: np.sum(x * x))
    for name, mode in (("Numba", "NUMBA"), ("Python", "FAST_COMPILE")):
        with warnings.catch_warnings(action="ignore"):  # that Numba calls Python, as it must
            ours = pytensor.function([x], pytensor.grad(inside(x), x), mode=mode)
        theirs = pytensor.function([x], pytensor.grad(pt.sum(x * x), x), mode=mode)
        yield (
            f"pytensor.grad of to_pytensor(f), {name}",
            lambda ours=ours: ours(point),
            lambda theirs=theirs: theirs(point),
        )


def for_scipy():
    from scipy.optimize import rosen, rosen_der, rosen_hess_prod

    def f(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0)

    x = np.linspace(0.5, 1.5, 10)
    assert np.isclose(f(x), rosen(x))
    slope, product = jac(f), hessp(f)
    yield "jac(rosen), beside rosen_der", lambda: slope(x), lambda: rosen_der(x)
    yield (
        "hessp(rosen), beside rosen_hess_prod",
        lambda: product(x, x),
        lambda: rosen_hess_prod(x, x),
    )


BRIDGES = (into_jax, jax_inside, torch_both_ways, into_casadi, into_pytensor, for_scipy)


def main():
    print(f"{'µs per call':42} {'Morula':>9} {'library':>9} {'ratio':>7}")
    for bridge in BRIDGES:
        try:
            cases = list(bridge())
        except ImportError as error:
            print(f"{bridge.__name__}: {error}")
            continue
        for name, ours, theirs in cases:
            np.testing.assert_allclose(
                np.ravel(np.asarray(ours())),
                np.ravel(np.asarray(theirs())),
                rtol=1e-6,
                err_msg=name,
            )
            a, b = microseconds(ours, theirs)
            print(f"{name:42} {a:9.1f} {b:9.1f} {a / b:7.1f}", flush=True)


if __name__ == "__main__":
    main()
