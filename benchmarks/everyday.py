"""Programs as people write them, with lists, dicts, objects, closures: gradients and plain calls.

Nobody writes adjoints of these by hand, so there is no third column; gradients are compared with
those of the general path first.

python -m benchmarks.everyday
"""

import bisect
import cmath
import gc
import heapq
import math
import statistics
import time
from dataclasses import dataclass

import numpy as np

from morula import code_adjoint, value_and_grad
from morula.core.extend import by_the_general_path
from morula.interop.scipy import ravel

rng = np.random.default_rng(0)


# -- arrays ----------------------------------------------------------------------------------------


def network(layers, x, y):
    """Layers as a list of dicts."""
    for i, layer in enumerate(layers):
        x = x @ layer["w"] + layer["b"]
        if i < len(layers) - 1:
            x = np.maximum(x, 0)
    return np.mean((x - y) ** 2)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(params, x):
    """Heads in a loop, collected in a list."""
    q, k, v = x @ params["q"], x @ params["k"], x @ params["v"]
    heads = []
    for h in range(4):
        s = slice(8 * h, 8 * h + 8)
        heads.append(softmax(q[:, s] @ k[:, s].T / np.sqrt(8)) @ v[:, s])
    return np.sum((np.concatenate(heads, axis=1) @ params["o"]) ** 2)


class Kalman:
    """A filter with its state in attributes."""

    def __init__(self, q, r):
        self.F, self.H = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[1.0, 0.0]])
        self.Q, self.R = q * np.eye(2), r * np.eye(1)
        self.x, self.P = np.zeros(2), np.eye(2)

    def step(self, z):
        """The likelihood of a measurement."""
        self.x, self.P = self.F @ self.x, self.F @ self.P @ self.F.T + self.Q
        y = z - self.H @ self.x
        S = self.H @ self.P @ self.H.T + self.R
        K = np.linalg.solve(S.T, (self.P @ self.H.T).T).T
        self.x, self.P = self.x + K @ y, (np.eye(2) - K @ self.H) @ self.P
        sign, log = np.linalg.slogdet(S)
        return -0.5 * (y @ np.linalg.solve(S, y) + sign * log)


def tracked(q, r, zs):
    """The likelihood of all of them."""
    filter, total = Kalman(q, r), 0.0
    for z in zs:
        total += filter.step(np.atleast_1d(z))
    return total


def orbit(p, n):
    """Runge and Kutta by a closure, the steps in a list."""
    a, b, c, d = p

    def slope(y):
        return np.array([a * y[0] - b * y[0] * y[1], d * y[0] * y[1] - c * y[1]])

    steps = [np.array([1.0, 1.0])]
    for _ in range(n):
        y = steps[-1]
        k1 = slope(y)
        k2 = slope(y + 0.025 * k1)
        k3 = slope(y + 0.025 * k2)
        k4 = slope(y + 0.05 * k3)
        steps.append(y + 0.05 / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    return np.sum((np.stack(steps) - 1.0) ** 2)


# -- numbers ---------------------------------------------------------------------------------------


def epidemic(beta, gamma, data):
    """A loop in a loop over a list."""
    s, i, loss = 0.99, 0.01, 0.0
    for d in data:
        for _ in range(5):
            new, gone = beta * s * i, gamma * i
            s, i = s - 0.2 * new, i + 0.2 * (new - gone)
        loss += (i - d) ** 2
    return loss


def option(spot, strike, rate, sigma):
    """A binomial tree, backwards in one list."""
    n = 60
    dt = 1.0 / n
    u = math.exp(sigma * math.sqrt(dt))
    p, discount = (math.exp(rate * dt) - 1 / u) / (u - 1 / u), math.exp(-rate * dt)
    v = [max(0.0, spot * u ** (2 * j - n) - strike) for j in range(n + 1)]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1):
            v[j] = discount * (p * v[j + 1] + (1 - p) * v[j])
    return v[0]


def distance(cost, s, t):
    """A table of lists."""
    d = [[0.0] * (len(t) + 1) for _ in range(len(s) + 1)]
    for i in range(1, len(s) + 1):
        d[i][0] = i * cost["del"]
    for j in range(1, len(t) + 1):
        d[0][j] = j * cost["ins"]
    for i in range(1, len(s) + 1):
        for j in range(1, len(t) + 1):
            swap = 0.0 if s[i - 1] == t[j - 1] else cost["sub"]
            d[i][j] = min(
                d[i - 1][j] + cost["del"], d[i][j - 1] + cost["ins"], d[i - 1][j - 1] + swap
            )
    return d[-1][-1]


def interpolated(ys, xs, data):
    """The place in a list by bisection."""
    total = 0.0
    for x, y in data:
        i = max(0, min(len(xs) - 2, bisect.bisect_right(xs, x) - 1))
        t = (x - xs[i]) / (xs[i + 1] - xs[i])
        total += (ys[i] * (1 - t) + ys[i + 1] * t - y) ** 2
    return total


def residuals(phi, theta, x):
    """A list whose end is read."""
    e = [0.0, 0.0]
    for t in range(2, len(x)):
        known = phi[0] * x[t - 1] + phi[1] * x[t - 2] + theta[0] * e[-1] + theta[1] * e[-2]
        e.append(x[t] - known)
    return sum(v * v for v in e)


def allometry(a, b, sizes):
    """Real powers, and messages for what cannot be."""
    total = 0.0
    for size in sizes:
        if size <= 0.0:
            raise ValueError(f"a size of {size:.3g}")
        total += (a * size**b - size**0.75) ** 2
    return total**0.5


def leaves(x, ratio):
    """A stack."""
    stack, total = [(x, 0)], 0.0
    while stack:
        width, depth = stack.pop()
        if depth == 6:
            total += width * width
        else:
            stack.append((width * ratio, depth + 1))
            stack.append((width * (1.0 - ratio), depth + 1))
    return total


def pendulum(length, damping):
    """A state that is a tuple."""

    def step(state):
        angle, speed = state
        return angle + 0.01 * speed, speed - 0.01 * (math.sin(angle) / length + damping * speed)

    state = 1.0, 0.0
    for _ in range(100):
        state = step(state)
    return sum(state)


def smooth(xs):
    """Parts of a list, and a list from its end."""
    total = 0.0
    for a, b in zip(xs[:-1], xs[1:], strict=True):  # noqa: RUF007
        total += (b - a) ** 2
    carry = 0.0
    for x in reversed(xs):
        carry = 0.9 * carry + x
    return total + carry * carry


def clipped(x, limit):
    """An array that is written to where a mask says."""
    y = x * 1.0
    z = y.copy()
    z[y > limit] = limit
    z[y < -limit] = -limit
    return np.sum((x - z) ** 2) + np.sum(z)


def interference(wavelength, distances):
    """Real and complex numbers together."""
    amplitude = 0.0 + 0.0j
    for d in distances:
        amplitude += cmath.exp(2j * math.pi * d / wavelength) / d
    return abs(amplitude) ** 2


# -- objects, generators, recursion ----------------------------------------------------------------


@dataclass
class Body:
    """A point with a mass."""

    x: float
    y: float
    vx: float
    vy: float
    m: float


def bodies(x, v):
    """Objects in a list."""
    found = [
        Body(x, 0.0, 0.0, v, 1.0),
        Body(-1.0, 0.0, 0.0, -0.5, 1.0),
        Body(0.0, 2.0, 0.3, 0.0, 0.5),
    ]
    for _ in range(20):
        for a in found:
            for b in found:
                if a is not b:
                    dx, dy = b.x - a.x, b.y - a.y
                    r = math.sqrt(dx * dx + dy * dy + 0.01)
                    a.vx += 0.01 * b.m * dx / r**3
                    a.vy += 0.01 * b.m * dy / r**3
        for a in found:
            a.x += 0.01 * a.vx
            a.y += 0.01 * a.vy
    return sum(a.x**2 + a.y**2 for a in found)


def walk(a, b):
    x = 1.0
    while True:
        yield x
        x = x + 0.1 * (a - b * x)


def walked(a, b):
    """An endless generator that is left."""
    total = 0.0
    for i, x in enumerate(walk(a, b)):
        if i == 200:
            break
        total += (x - 1.5) ** 2
    return total


def labelled(weights, words):
    """A dict with computed keys, sums over generators."""
    alpha = {t: weights.get((t, words[0]), 0.0) for t in "AB"}
    for w in words[1:]:
        new = {}
        for t in "AB":
            scores = [alpha[s] + weights[s, t] + weights.get((t, w), 0.0) for s in "AB"]
            most = max(scores)
            new[t] = most + math.log(sum(math.exp(v - most) for v in scores))
        alpha = new
    return math.log(sum(math.exp(v) for v in alpha.values()))


class Controller:
    """A controller whose first step has no step before it."""

    def __init__(self, p, i, d):
        self.p, self.i, self.d = p, i, d
        self.total, self.last = 0.0, None

    def update(self, error, h):
        self.total += error * h
        slope = 0.0 if self.last is None else (error - self.last) / h
        self.last = error
        return self.p * error + self.i * self.total + self.d * slope


def controlled(p, i, d):
    """An object with state, which begins as None."""
    controller, x, v, cost = Controller(p, i, d), 0.0, 0.0, 0.0
    for _ in range(50):
        error = 1.0 - x
        v += (controller.update(error, 0.05) - 0.5 * v) * 0.05
        x += v * 0.05
        cost += error * error
    return cost


def grouped(values, labels):
    """Sums and counts by label."""
    totals, counts = {}, {}
    for label, v in zip(labels, values, strict=True):
        totals[label] = totals.get(label, 0.0) + v
        counts[label] = counts.get(label, 0) + 1
    return sum((totals[k] / counts[k]) ** 2 for k in totals)


def walk_of_chances(p, q):
    """Chances by place, a dict after the other."""
    chances = {0: 1.0}
    for _ in range(8):
        after = {}
        for place, chance in chances.items():
            after[place + 1] = after.get(place + 1, 0.0) + chance * p
            after[place - 1] = after.get(place - 1, 0.0) + chance * q
        chances = after
    return sum(chance * place**2 for place, chance in chances.items())


def served(rate, service):
    """Events in a heap."""
    events, total, free, n = [(0.0, 0)], 0.0, 0.0, 0
    while events:
        t, kind = heapq.heappop(events)
        n += 1
        free = max(t, free) + service
        total += free - t
        if n < 20:
            heapq.heappush(events, (t + 1.0 / (rate + 0.1 * n), kind + 1))
    return total / n


def eliminated(matrix, right):
    """Lists of lists, whose rows change places."""
    n = len(right)
    m = [row[:] + [x] for row, x in zip(matrix, right, strict=True)]  # noqa: RUF005
    for c in range(n):
        p = max(range(c, n), key=lambda r: abs(m[r][c]))
        m[c], m[p] = m[p], m[c]
        for r in range(c + 1, n):
            f = m[r][c] / m[c][c]
            for k in range(c, n + 1):
                m[r][k] -= f * m[c][k]
    x = [0.0] * n
    for i in range(n - 1, -1, -1):
        x[i] = (m[i][n] - sum(m[i][k] * x[k] for k in range(i + 1, n))) / m[i][i]
    return sum(v * v for v in x)


def greedy(items, room):
    """Pairs in the order of their quotients."""
    total = 0.0
    for value, weight in sorted(items, key=lambda t: t[0] / t[1], reverse=True):
        taken = min(weight, room)
        total += value * taken
        room -= taken
    return total


def weights(*shape):
    return rng.normal(size=shape) / np.sqrt(shape[0])


LAYERS = [{"w": weights(n, m), "b": np.zeros(m)} for n, m in ((10, 32), (32, 32), (32, 1))]
HEADS = {name: weights(32, 32) for name in "qkvo"}
PAIRS = {(t, w): 0.1 * i for i, (t, w) in enumerate((t, w) for t in "AB" for w in "xyzAB")}

CASES = {
    "network of dicts": (network, 0, (LAYERS, weights(64, 10), weights(64, 1))),
    "attention": (attention, 0, (HEADS, weights(20, 32))),
    "Kalman filter, object": (tracked, (0, 1), (0.1, 0.5, np.cumsum(weights(50)))),
    "Runge-Kutta, closure": (orbit, 0, (np.array([1.1, 0.4, 0.4, 0.1]), 100)),
    "epidemic": (epidemic, (0, 1), (0.5, 0.1, [0.01 * k for k in range(30)])),
    "option": (option, (0, 1, 2, 3), (100.0, 95.0, 0.05, 0.2)),
    "distance of words": (distance, 0, ({"del": 1.0, "ins": 1.2, "sub": 1.7}, "kitten" * 2, "sitting")),
    "interpolation": (
        interpolated, 0,
        ([0.1 * k for k in range(11)], [k / 10 for k in range(11)], [(k / 99, 0.5) for k in range(99)]),
    ),
    "residuals in a list": (
        residuals, (0, 1), (np.array([0.5, -0.2]), np.array([0.3, 0.1]), weights(100)),
    ),
    "allometry": (allometry, (0, 1), (1.1, 0.7, [0.1 * k + 0.5 for k in range(30)])),
    "leaves": (leaves, (0, 1), (1.0, 0.3)),
    "pendulum": (pendulum, (0, 1), (1.2, 0.1)),
    "smooth": (smooth, 0, ([math.sin(0.1 * k) for k in range(60)],)),
    "clipped": (clipped, 0, (weights(1000), 0.01)),
    "interference": (interference, 0, (0.5, [1.0 + 0.013 * k for k in range(30)])),
    "bodies, objects": (bodies, (0, 1), (1.0, 0.5)),
    "generator": (walked, (0, 1), (1.0, 0.5)),
    "controller": (controlled, (0, 1, 2), (1.0, 0.3, 0.1)),
    "sums by label": (grouped, 0, ([0.1 * k + 0.3 for k in range(30)], "abcab" * 6)),
    "chances by place": (walk_of_chances, (0, 1), (0.7, 0.2)),
    "events in a heap": (served, (0, 1), (2.0, 0.5)),
    "elimination, lists of lists": (
        eliminated, (0, 1),
        ([[2.0, 1.0, 0.5, 0.1], [1.0, 3.0, 0.2, 0.3], [0.5, 0.2, 1.5, 0.7], [0.3, 0.9, 0.4, 2.5]],
         [1.0, 2.0, 3.0, 0.5]),
    ),
    "greedy, sorted pairs": (
        greedy, (0, 1), ([(1.0 + 0.37 * k % 2, 0.5 + 0.21 * k % 1) for k in range(12)], 4.0),
    ),
    "labels of words": (labelled, 0, (PAIRS, list("xyzxyyzxzxyzzyx"))),
}  # fmt: skip


def flat(gradients):
    """All numbers of a structure of gradients."""
    vector, _ = ravel(gradients)
    return vector


def ratio(first, second, rounds=15):
    """How many times as long the second takes, in turns: the median."""

    def seconds(call):
        begin, n = time.process_time(), 0
        while time.process_time() - begin < 2e-3:
            call()
            n += 1
        return (time.process_time() - begin) / n

    return statistics.median(seconds(second) / seconds(first) for _ in range(rounds))


def table():
    """Lines of the programs: what the gradient costs, as a multiple of the plain call."""
    yield "", ("plain, us", "grad / plain", "at run time")
    for name, (f, argnums, args) in CASES.items():
        g = value_and_grad(f, argnums)
        value, gradients = g(*args)
        with by_the_general_path():
            expected = value_and_grad(f, argnums)(*args)
        assert value == expected[0] == f(*args)
        np.testing.assert_allclose(flat(gradients), flat(expected[1]), rtol=1e-9, atol=1e-12)
        gc.collect()
        found = ratio(lambda f=f, a=args: f(*a), lambda g=g, a=args: g(*a))
        begin, n = time.process_time(), 0
        while time.process_time() - begin < 0.02:
            f(*args)
            n += 1
        plain = 1e6 * (time.process_time() - begin) / n
        late = code_adjoint(f, *args)
        calls = len(late.left) if late.kind.startswith("specialised") else "all"
        yield name, (f"{plain:.3g}", f"{found:.3g}", calls)


if __name__ == "__main__":
    for name, columns in table():
        print(f"{name:24}" + "".join(f"{x!s:>14}" for x in columns), flush=True)
