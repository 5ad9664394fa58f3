"""Second derivatives beside those of JAX and Autograd, and what each further order costs.

python -m benchmarks.orders
"""

import math
import time

import numpy as np

from benchmarks.bridges import microseconds
from morula import grad, hessian, hvp, jacobian, jvp
from morula.core.extend import by_the_general_path


def time_of(f):
    """Microseconds of a call, warm."""
    (found,) = microseconds(f)
    return found


def rosenbrock(np):
    """Rosenbrock's function by a module of NumPy's functions."""
    return lambda x: np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def layers(np):
    """Two layers of five neurons, as a function of thirty weights."""

    def loss(w):
        a = np.tanh(np.reshape(w[:25], (5, 5)) @ np.reshape(w[25:], (5, 1)))
        return np.sum(a * a)

    return loss


def log_sum_exp(np):
    """The logarithm of a sum of exponentials."""
    return lambda x: np.log(np.sum(np.exp(x)))


CASES = {
    "Rosenbrock, n = 10": (rosenbrock, np.linspace(0.5, 1.5, 10)),
    "Rosenbrock, n = 100": (rosenbrock, np.linspace(0.5, 1.5, 100)),
    "two layers, n = 30": (layers, np.linspace(-1.0, 1.0, 30)),
    "log-sum-exp, n = 30": (log_sum_exp, np.linspace(-1.0, 1.0, 30)),
}


def second_derivatives():
    """Lines of a case: microseconds of a gradient, a product, and Hessians by each tool."""
    yield "", ("gradient", "hvp", "hessian", "JAX, jit", "JAX, eager", "Autograd")
    for name, (of, x) in CASES.items():
        f, v = of(np), np.ones_like(x)
        g = grad(f)
        times = [time_of(lambda g=g, x=x: g(x))]
        times.append(time_of(lambda f=f, x=x, v=v: hvp(f, x, v)))
        times.append(time_of(lambda f=f, x=x: hessian(f, x)))
        yield name, (*[round(t) for t in times], *by_others(of, x, hessian(f, x)))


def by_others(of, x, expected):
    """Microseconds of the Hessians of JAX and Autograd, which have to agree."""
    import autograd
    import autograd.numpy as anp
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    theirs = jax.hessian(of(jnp))
    for H in (jax.jit(theirs), theirs, autograd.hessian(of(anp))):
        np.testing.assert_allclose(np.asarray(H(x)), expected, rtol=1e-8, atol=1e-8)
        yield round(time_of(lambda H=H: np.asarray(H(x))))


def network(np, w, x):
    """Two hidden layers of sixteen neurons, by 337 weights in one array."""
    a = np.tanh(x @ np.reshape(w[:16], (1, 16)) + w[16:32])
    a = np.tanh(a @ np.reshape(w[32:288], (16, 16)) + w[288:304])
    return a @ np.reshape(w[304:320], (16, 1)) + w[320]


def by_slope(np, grad):
    """How far the slope of the network is from a cosine, at 64 points."""
    points = np.linspace(0.0, 1.0, 64)[:, None]

    def loss(w):
        slope = grad(lambda x: np.sum(network(np, w, x)))(points)
        return np.mean((slope - np.cos(points)) ** 2)

    return loss


def by_curvature(np, grad):
    """The same of its second derivative and a sine."""
    points = np.linspace(0.0, 1.0, 64)[:, None]

    def loss(w):
        slope = grad(lambda x: np.sum(network(np, w, x)))
        curvature = grad(lambda x: np.sum(slope(x)))(points)
        return np.mean((curvature + np.sin(points)) ** 2)

    return loss


def derivatives_in_a_loss():
    """Microseconds of the gradient of a loss that takes derivatives itself, by each tool."""
    import autograd
    import autograd.numpy as anp
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    w = np.random.default_rng(0).normal(size=321)
    yield "", ("first call, ms", "Morula", "JAX, jit", "JAX, eager", "Autograd")
    for name, of in {"slope": by_slope, "curvature": by_curvature}.items():
        g = grad(of(np, grad))
        begin = time.perf_counter()
        expected = g(w)
        times = [1e3 * (time.perf_counter() - begin), time_of(lambda g=g: g(w))]
        theirs = jax.grad(of(jnp, jax.grad))
        for h in (jax.jit(theirs), theirs, autograd.grad(of(anp, autograd.grad))):
            np.testing.assert_allclose(np.asarray(h(w)), expected, rtol=1e-8, atol=1e-8)
            times.append(time_of(lambda h=h: np.asarray(h(w))))
        yield f"{name} of a network", [round(t) for t in times]


def bump(x):
    """A small function of one number."""
    return math.exp(-x * x) / (1.0 + x * x)


def orders(most=6):
    """Milliseconds of the first call of each derivative, microseconds of the next ones."""
    yield "order", ("first call, ms", "later calls, us")
    g = bump
    for order in range(1, most + 1):
        g = grad(g)
        begin = time.perf_counter()
        g(0.6)
        first = 1e3 * (time.perf_counter() - begin)
        yield str(order), (round(first), round(time_of(lambda g=g: g(0.6)), 1))


def banded(x):
    """A vector with a Jacobian of three diagonals."""
    return x[1:-1] ** 2 - x[:-2] * x[2:]


def arrow(x):
    """A number with a Hessian of one row, one column and the diagonal."""
    return np.sum(x[0] * np.tanh(x[1:]) ** 2)


def sparse(n=10_000):
    """Seconds of sparse derivatives, and of the same with the pattern that was found."""
    yield "", ("with pattern, s", "pattern given, s", "entries")
    x = np.linspace(0.0, 1.0, n)
    cases = {
        "banded Jacobian": lambda known: jacobian(banded, x, sparsity=known)[0],
        "banded Hessian": lambda known: hessian(rosenbrock(np), x, sparsity=known),
        "arrow-shaped Hessian": lambda known: hessian(arrow, x, sparsity=known),
    }
    for name, derivative in cases.items():
        begin = time.perf_counter()
        found = derivative("auto")
        between = time.perf_counter()
        derivative(found)
        times = between - begin, time.perf_counter() - between
        yield f"{name}, n = {n}", (*[round(t, 2) for t in times], found.nnz)


def settled(k):
    """A chemical reaction of three kinds after two hundred steps, by its three rates."""
    a, b, c = 1.0, 0.0, 0.0
    for _ in range(200):
        u, v, w = k[0] * a, k[1] * b * c, k[2] * b * b
        a, b, c = a + 0.01 * (v - u), b + 0.01 * (u - v - w), c + 0.01 * w
    return np.array([a, b, c])


def predators(p):
    """Hares and lynxes after a hundred steps of Runge and Kutta's, by the four rates."""
    y, h = np.array([10.0, 5.0]), 0.05

    def slope(y):
        met = y[0] * y[1]
        return np.array([p[0] * y[0] - p[1] * met, p[2] * met - p[3] * y[1]])

    for _ in range(100):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(y + h * k3))
    return np.sum(y**2)


def pendulum(p):
    """The angle of a pendulum after a hundred steps, by the first one and the length."""
    angle, speed = p[0], 0.0
    for _ in range(100):
        angle, speed = angle + 0.01 * speed, speed - 0.01 * math.sin(angle) / p[1]
    return angle * angle


def loops():
    """Microseconds of functions with loops, of their gradients and of products with a Hessian."""
    yield "", ("function", "gradient", "hvp", "hvp, general")
    for f, x in (
        (predators, np.array([1.1, 0.4, 0.1, 0.4])),
        (pendulum, np.array([1.0, 0.3])),
    ):
        g, v = grad(f), np.ones_like(x)
        with by_the_general_path():
            begin = time.perf_counter()
            expected = hvp(f, x, v)
            general = 1e6 * (time.perf_counter() - begin)
        np.testing.assert_allclose(hvp(f, x, v), expected, rtol=1e-8)
        times = [
            time_of(lambda f=f, x=x: f(x)),
            time_of(lambda g=g, x=x: g(x)),
            time_of(lambda f=f, x=x, v=v: hvp(f, x, v)),
        ]
        yield f.__name__, [round(t) for t in (*times, general)]


def damped(k, c):
    """The angle of a damped pendulum after two hundred steps, by two numbers."""
    angle, speed = 1.0, 0.0
    for _ in range(200):
        angle, speed = angle + 0.01 * speed, speed - 0.01 * (k * math.sin(angle) + c * speed)
    return angle


def directions():
    """Microseconds of derivatives along a direction, on both paths, and of Jacobians by columns."""
    yield "", ("function", "direction", "general", "Jacobian", "differences")
    mixed = (lambda x: np.sin(x) * np.mean(x) + np.roll(x, 1)), (np.linspace(0.0, 1.0, 16),)
    cases = {
        "loop, 2 numbers": (damped, (9.0, 0.3)),
        "loop, array of 3": (settled, (np.array([0.04, 1.0, 3.0]),)),
        "Runge-Kutta, arrays of 2": (predators, (np.array([1.1, 0.4, 0.1, 0.4]),)),
        "array of 16": mixed,
    }
    for name, (f, args) in cases.items():
        v = tuple([np.ones_like(x)[()] if isinstance(x, np.ndarray) else 1.0 for x in args])
        with by_the_general_path():
            general = time_of(lambda f=f, args=args, v=v: jvp(f, args, v))
        times = [
            time_of(lambda f=f, args=args: f(*args)),
            time_of(lambda f=f, args=args, v=v: jvp(f, args, v)),
            general,
            time_of(lambda f=f, args=args: jacobian(f, *args, mode="forward")),
            time_of(lambda f=f, args=args: by_differences(f, args)),
        ]
        yield name, [round(t) for t in times]


def by_differences(f, args):
    """The Jacobians by differences, one for each entry, as a careful person writes them."""
    y, h = f(*args), 1e-7
    columns = []
    for i, x in enumerate(args):
        for e in np.eye(np.size(x)):
            step = h * (e.reshape(np.shape(x)) if isinstance(x, np.ndarray) else 1.0)
            columns.append((f(*args[:i], x + step, *args[i + 1 :]) - y) / h)
    return columns


if __name__ == "__main__":
    for table in (second_derivatives, loops, derivatives_in_a_loss, orders, directions, sparse):
        for name, columns in table():
            print(f"{name:28}" + "".join(f"{x!s:>16}" for x in columns), flush=True)
        print()
