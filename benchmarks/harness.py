"""Compare, time, tabulate.

All competitors of a case take turns in every round, in random order, and what is kept of a round
is each one's ratio to the hand-written adjoint in that same round: a machine that slows down slows
all of them. The figures are medians over the rounds, with the quartiles as spread. Time is the
process's CPU time, so that other processes do not count.
"""

from __future__ import annotations

import gc
import importlib.metadata
import importlib.util
import platform
import random
import signal
import statistics
import sys
import time
import timeit
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from benchmarks import case as cases
from benchmarks.case import COLD_MS, MEMORY, Array, Call, Case, Skip, flat
from benchmarks.peers import PEERS

SAMPLE = 2e-3  # seconds; far above the clock's resolution and the loop's own cost
PATIENCE = 60.0  # seconds that a first call may take, compilation included
KILOBYTES = 4096  # the least peak to compare with: frames, closures, an allocator's reserve
COLD_ENOUGH = 3.0  # seconds of first calls after which there are no more
WARM_UP = 0.1  # seconds of a sample up to which a call goes before it
PEER_CALL = 5.0  # seconds per call beyond which a peer is not timed


@dataclass(frozen=True)
class Settings:
    """How much effort a run makes."""

    rounds: int = 25
    least: int = 5
    budget: float = 3.0  # seconds per case for Morula, the primal and by hand; as much for the rest
    colds: int = 5
    peers: bool = True


QUICK = Settings(rounds=7, least=3, budget=0.5, colds=3)


@dataclass(frozen=True)
class Ratio:
    """Time over the hand-written adjoint's: median and quartiles over the rounds."""

    median: float
    low: float
    high: float
    rounds: int


@dataclass
class Result:
    """What one case gave."""

    name: str
    bound: float
    by_hand_us: float = 0.0
    ratios: dict[str, Ratio] = field(default_factory=dict)
    cold_ms: float | None = None
    memory: tuple[int, int] | None = None  # peak bytes, by hand and Morula
    reasons: dict[str, str] = field(default_factory=dict)  # why a competitor has no ratio
    wrong: list[str] = field(default_factory=list)


@dataclass
class Contender:
    """A competitor that has proved its gradient; `number` calls make one sample."""

    name: str
    timer: timeit.Timer
    number: int = 1
    cost: float = 0.0  # seconds per sample
    times: dict[int, float] = field(default_factory=dict)  # round -> seconds per call


def run(case: Case, module: str, settings: Settings, timed: bool = True) -> Result:
    """Compare all gradients of the case, then time those that are right."""
    result = Result(case.name, case.bound)
    inputs = case.make_inputs()
    calls = {"by hand": Call(case.by_hand, inputs), "primal": Call(case.primal, inputs)}
    builders: dict[str, Callable[[], Call]] = {"morula": partial(morula_call, case, inputs)}
    builders |= {name: partial(Call, f, inputs) for name, f in case.variants.items()}
    if settings.peers:
        builders |= {name: partial(peer, *inputs) for name, peer in case.peers.items()}
    expected = case.by_hand(*inputs)
    case.primal(*inputs)
    for name, build in builders.items():
        try:
            with patience(PATIENCE):
                call = build()
                error = difference(call, expected)
                if name == "morula":  # what the first call may have spoilt, the second shows
                    error = max(error, difference(call, expected))
        except Skip as reason:
            result.reasons[name] = str(reason)
        except Exception as error_raised:  # a competitor's failure is a result, too
            result.reasons[name] = in_short(error_raised)
        else:
            if error <= call.rtol:
                calls[name] = call
            else:
                result.reasons[name] = f"gradient differs by {error:.1e}"
                if name == "morula":
                    result.wrong.append(f"WRONG gradient, relative difference {error:.1e}")
    if timed:
        measure(calls, result, settings)
        if "morula" in calls and result.by_hand_us < 2e5:
            result.memory = peak(calls["by hand"]), peak(calls["morula"])
            try:
                result.cold_ms = cold(case, module, settings.colds)
            except Exception as error_raised:
                result.reasons["morula, cold"] = in_short(error_raised)
    return result


def morula_call(case: Case, inputs: tuple[Any, ...]) -> Call:
    """Morula as its users call it: the transform made once, then called."""
    import morula

    transform = morula.value_and_grad if case.with_value else morula.grad
    return Call(transform(case.primal, case.argnums), inputs)


def difference(call: Call, expected: Any) -> float:
    """The largest error of a gradient, each array's relative to its own largest entry."""
    got, want = flat(call.read(call.fn(*call.args)), expected), flat(expected)
    if got.shape != want.shape:
        raise ValueError(f"{got.size} numbers instead of {want.size}")
    parts = [*cases.leaves(expected)]
    ends = np.cumsum([part.size for part in parts])[:-1]
    least = 1e-6 * np.max(np.abs(want))  # rounding of what nearly cancels is no error
    errors = [
        np.max(np.abs(part - right)) / max(np.max(np.abs(right)), least)
        for part, right in zip(np.split(got, ends), parts, strict=True)
    ]
    worst = float(np.max(errors))
    return worst if np.isfinite(worst) else np.inf


def check_by_hand(case: Case) -> float:
    """Relative error of the hand-written adjoint against differences in random directions."""
    inputs = case.make_inputs()
    gradient = case.by_hand(*inputs)
    if case.with_value:
        value, gradient = gradient
        if not np.isclose(value, case.primal(*inputs), rtol=1e-12):
            raise ValueError("the hand-written value differs from the primal's")
    gradients = (gradient,) if isinstance(case.argnums, int) else gradient
    ḡ = flat(gradients)
    points = cases.chosen(case, inputs)
    argnums = (case.argnums,) if isinstance(case.argnums, int) else case.argnums
    rng = np.random.default_rng(0)
    worst = 0.0

    def along(direction: Array, by: float) -> float:
        step = cases.transplant(gradients, iter(direction.tolist()))
        args = [*inputs]
        for i, point, part in zip(argnums, points, step, strict=True):
            args[i] = cases.shifted(point, part, by)
        return float(case.primal(*args))

    for _ in range(3):
        v = rng.standard_normal(ḡ.size)
        v /= np.linalg.norm(v)
        h = case.step
        near = along(v, h) - along(v, -h)
        far = along(v, 2 * h) - along(v, -2 * h)
        slope = (8 * near - far) / (12 * h)
        worst = max(worst, abs(slope - float(ḡ @ v)) / float(np.linalg.norm(ḡ)))
    return worst


# Timing


def timer(call: Call) -> timeit.Timer:
    """A loop with nothing in it but the call, as in `timeit`: 50 ns of a lambda would show."""
    names = [f"a{i}" for i in range(len(call.args))]
    setup = "; ".join(["f = call.fn", *(f"a{i} = call.args[{i}]" for i in range(len(names)))])
    return timeit.Timer(f"f({', '.join(names)})", setup, time.process_time, {"call": call})


def measure(calls: dict[str, Call], result: Result, settings: Settings) -> None:
    """Fill in the ratios of all calls."""
    contenders = []
    for name, call in calls.items():
        contender = Contender(name, timer(call))
        try:
            seconds = calibrate(contender)
        except Exception as error:
            result.reasons[name] = in_short(error)
            continue
        if name in PEERS and seconds > PEER_CALL:
            result.reasons[name] = f"{seconds:.0f} s per call"
        else:
            contenders.append(contender)
    main = [c for c in contenders if c.name in ("by hand", "primal", "morula")]
    total = sum(c.cost for c in main)
    least = settings.least if total < settings.budget else 3
    rounds = max(least, min(settings.rounds, int(settings.budget / total)))
    share = settings.budget / max(1, len(contenders) - len(main))
    turns = {
        c.name: rounds if c in main else max(2, min(rounds, int(share / c.cost)))
        for c in contenders
    }
    shuffle = random.Random(0)
    gc.collect()
    gc.freeze()  # what is alive need not be looked at again after every round
    gc.disable()
    try:
        for k in range(rounds):
            for contender in shuffle.sample(contenders, len(contenders)):
                if k * turns[contender.name] % rounds < turns[contender.name]:
                    if contender.cost < WARM_UP:
                        contender.timer.timeit(1)  # the caches are the last one's
                    seconds = contender.timer.timeit(contender.number)
                    contender.times[k] = seconds / contender.number
            gc.collect()
    finally:
        gc.enable()
        gc.unfreeze()
    yardstick = contenders[0].times
    result.by_hand_us = statistics.median(yardstick.values()) * 1e6
    for contender in contenders[1:]:
        ratios = [seconds / yardstick[k] for k, seconds in contender.times.items()]
        low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
        result.ratios[contender.name] = Ratio(median, low, high, len(ratios))


def calibrate(contender: Contender) -> float:
    """Choose how many calls make a sample; seconds per call."""
    number = 1
    while True:
        seconds = contender.timer.timeit(number)
        if seconds >= SAMPLE:
            break
        number = max(2 * number, min(10 * number, int(1.2 * number * SAMPLE / (seconds + 1e-9))))
    contender.number, contender.cost = number, seconds
    return seconds / number


def peak(call: Call) -> int:
    """Bytes that a call holds at its peak, its result included; the least of three calls.

    Python and NumPy keep small blocks for reuse, which makes a kilobyte more or less.
    """
    peaks = []
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(4):  # the first one warms up
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            result = call.fn(*call.args)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
            del result
    finally:
        tracemalloc.stop()
    return min(peaks[1:])


def cold(case: Case, module: str, times: int) -> float:
    """Milliseconds of the first call of a transform on code never seen before, median."""
    seconds = []
    for k in range(times):
        copy = fresh(module, k)
        sys.modules[copy.__name__] = copy
        twin = next(c for c in copy.CASES if c.name == case.name)
        inputs = twin.make_inputs()
        start = time.process_time()
        call = morula_call(twin, inputs)
        call.fn(*call.args)
        seconds.append(time.process_time() - start)
        del sys.modules[copy.__name__]
        if sum(seconds) > COLD_ENOUGH:
            break
    return statistics.median(seconds) * 1e3


def fresh(module: str, k: int) -> ModuleType:
    """The module once more, with classes of its own and code objects that equal no others."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    with open(spec.origin, encoding="utf-8") as file:
        code = compile(file.read(), spec.origin, "exec")
    copy = ModuleType(f"{module}_{k}")
    exec(renamed(code, f"_{k}_{time.perf_counter_ns()}"), copy.__dict__)
    return copy


def renamed(code: CodeType, suffix: str) -> CodeType:
    """Code objects compare by content, names included: another name is another code."""
    consts = (renamed(c, suffix) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_name=code.co_name + suffix, co_consts=tuple(consts))


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """TimeoutError in a call that does not come back, where the system has such an alarm."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: Any) -> None:
        raise TimeoutError(f"no answer within {seconds:.0f} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def in_short(error: Exception) -> str:
    """An exception in one short line."""
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed"
    text = f"{type(error).__name__}: {error}".splitlines()[0]
    return text if len(text) <= 100 else text[:97] + "..."


# Reporting


HEADER = ("case", "by hand", "primal", "morula", "spread", "bound", "cold", "memory", *PEERS)


def row(result: Result) -> tuple[str, ...]:
    """The cells of one line of the table; `!` marks what is out of bounds."""
    ours = result.ratios.get("morula")
    cells = [
        result.name,
        microseconds(result.by_hand_us),
        ratio(result.ratios.get("primal")),
        ratio(ours, result.bound),
        f"{ours.low:.2f}-{ours.high:.2f}" if ours else "-",
        f"{result.bound:g}",
        "-" if result.cold_ms is None else marked(f"{result.cold_ms:.1f}", result.cold_ms, COLD_MS),
        "-",
    ]
    if result.memory:
        by_hand, peak_of_ours = result.memory
        if max(result.memory) < KILOBYTES:
            cells[-1] = "small"
        else:
            quotient = peak_of_ours / max(by_hand, KILOBYTES)
            cells[-1] = marked(f"{quotient:.2f}", quotient, MEMORY)
    return *cells, *(ratio(result.ratios.get(name)) for name in PEERS)


def microseconds(us: float) -> str:
    """Three or four figures and a unit."""
    if us >= 1e6:
        return f"{us / 1e6:.3g} s"
    if us >= 1e4:
        return f"{us / 1e3:.3g} ms"
    return f"{us:.4g} µs" if us >= 1000 else f"{us:.3g} µs"


def ratio(r: Ratio | None, bound: float = np.inf) -> str:
    """A ratio with about three figures."""
    if r is None:
        return "-"
    m = r.median
    return marked(f"{m:.2f}" if m < 10 else f"{m:.1f}" if m < 100 else f"{m:.0f}", m, bound)


def marked(text: str, value: float, bound: float) -> str:
    """`text`, with a mark where the value is out of bounds."""
    return f"{text}!" if value > bound else text


def line(cells: tuple[str, ...], width: int) -> str:
    """One line of the table."""
    widths = [width, 9, 7, 7, 11, 5, 7, 7, *(max(len(name), 8) for name in PEERS)]
    first, *rest = zip(cells, widths, strict=True)
    return " ".join([first[0].ljust(first[1]), *(text.rjust(n) for text, n in rest)])


def notes(result: Result) -> list[str]:
    """What does not fit into the table: other adjoints by hand, and who is missing and why."""
    lines = [
        f"{name}, by hand: {ratio(r)}"
        for name, r in result.ratios.items()
        if name not in ("primal", "morula", *PEERS)
    ]
    by_reason: dict[str, list[str]] = {}
    for name, reason in result.reasons.items():
        by_reason.setdefault(reason, []).append(name)
    return lines + [f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()]


def record(result: Result) -> dict[str, Any]:
    """The case's entry in `ratios.json`."""
    entry: dict[str, Any] = {
        "bound": result.bound,
        "by_hand_us": figures(result.by_hand_us),
        "ratios": {
            name: {
                "median": figures(r.median),
                "spread": [figures(r.low), figures(r.high)],
                "rounds": r.rounds,
            }
            for name, r in result.ratios.items()
        },
    }
    if result.cold_ms is not None:
        entry["cold_ms"] = figures(result.cold_ms)
    if result.memory:
        by_hand, ours = result.memory
        entry["peak_bytes"] = {"by hand": by_hand, "morula": ours}
    if result.reasons:
        entry["missing"] = result.reasons
    entry["versions"] = versions()
    return entry


def figures(value: float) -> float:
    """Four figures: more would be noise."""
    return float(f"{value:.4g}")


def versions() -> dict[str, str]:
    """Python, NumPy and the peers that are installed."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in ("morula", "numpy", "scipy", "autograd", "torch", "jax"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
