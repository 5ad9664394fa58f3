"""Peak memory of the gradient of a Lorenz system by its steps: ordinary loops and `checkpointed`.

python -m benchmarks.memory [figure.svg]

Each point is measured in a process of its own, by `tracemalloc`, after a first call with few steps.
"""

import subprocess
import sys
import tracemalloc
from functools import partial

from morula import checkpointed, gradient

PARAMETERS = (10.0, 28.0, 8 / 3)
STEP = 2e-4


def ordinary(p, n):
    """x after n steps of Euler's method."""
    x, y, z = 1.0, 1.0, 20.0
    s, r, b = p
    for _ in range(n):
        dx, dy, dz = s * (y - x), x * (r - z) - y, x * y - b * z
        x, y, z = x + STEP * dx, y + STEP * dy, z + STEP * dz
    return x


def in_checkpoints(p, n, slots=None):
    """The same, of which only so many states are kept, about log₂ n by default."""
    x, y, z = 1.0, 1.0, 20.0
    s, r, b = p
    for _ in checkpointed(range(n), slots=slots):
        dx, dy, dz = s * (y - x), x * (r - z) - y, x * y - b * z
        x, y, z = x + STEP * dx, y + STEP * dy, z + STEP * dz
    return x


LOOPS = {
    "an ordinary loop": ordinary,
    "checkpointed, about log₂ n states": in_checkpoints,
    "checkpointed, slots=8": partial(in_checkpoints, slots=8),
}
STEPS = (100, 1_000, 10_000, 100_000)


def peak(loop, n):
    """The bytes that the gradient holds at most, and the gradient."""
    gradient(loop, PARAMETERS, 10)
    tracemalloc.start()
    (found, _) = gradient(loop, PARAMETERS, n)
    return tracemalloc.get_traced_memory()[1], found


def measured(name, n):
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.memory", "--one", name, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    most, *found = map(float, done.stdout.split())
    return most, found


def main(figure=None):
    """Measure all, compare the gradients, print the table, and draw it."""
    table = {name: [measured(name, n) for n in STEPS] for name in LOOPS}
    first, *others = table.values()
    for found in others:
        for (_, a), (_, b) in zip(first, found, strict=True):
            assert all(abs(x - y) <= 1e-9 * abs(x) for x, y in zip(a, b, strict=True)), (a, b)
    print(f"{'steps':36s}", *[f"{n:>10,}" for n in STEPS])
    for name, found in table.items():
        print(f"{name:36s}", *[f"{most / 1e6:8.2f}MB" for most, _ in found])
    if figure is not None:
        draw(table, figure)


def draw(table, figure):
    """Both axes logarithmic."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "morula"})
    _, axes = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
    for (name, found), mark in zip(table.items(), "os^", strict=True):
        axes.loglog(STEPS, [most / 1e6 for most, _ in found], marker=mark, label=name)
    axes.set(xlabel="steps", ylabel="peak memory, MB")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    pyplot.savefig(figure, metadata={"Date": None})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        most, found = peak(LOOPS[sys.argv[2]], int(sys.argv[3]))
        print(most, *found)
    else:
        main(*sys.argv[1:])
