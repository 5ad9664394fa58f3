"""Rules of draws of random numbers that depend on their parameters, or move what they are given.

A draw is a function of its parameters and of a standard draw z, which does not depend on them:
y = a + b z, or another formula by which z is found from y. Draws of whole numbers are constant.
`permutation`, `permuted` and `choice` take entries of an array: which ones, the same draw tells.
Where a scale is 0, the draw behind it is taken to be one in the middle, 0.
Tests: tests/rules/arrays/test_draws.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    Const,
    Known,
    NoTangent,
    NotKnown,
    UnsupportedError,
    ZeroTangent,
    call,
    coarsened,
    is_zero,
    known_value,
    non_differentiable,
    opaque,
    rrule,
    sample_value,
    transfers,
)
from morula.rules.arrays.bodies import instead_of
from morula.rules.arrays.broadcasting import unbroadcast
from morula.rules.arrays.construction import as_it_is, like_sequence
from morula.rules.arrays.inplace import overwrite, refuse, seed
from morula.rules.arrays.moving import moved_back, numbered
from morula.rules.arrays.outs import constant_but_for_out, outs_of, parted
from morula.rules.arrays.structural import masked
from morula.rules.arrays.types import Sequence
from morula.rules.calls import serves
from morula.rules.numbers import Anything

SOURCES: tuple[Any, ...] = (np.random.Generator, np.random.RandomState)
CONSTANT = """
    binomial poisson geometric multinomial negative_binomial hypergeometric
    logseries zipf multivariate_hypergeometric
"""
for _source in (*SOURCES, np.random):
    for _name in CONSTANT.split():
        if hasattr(_source, _name):
            constant_but_for_out(getattr(_source, _name))
non_differentiable(np.random.ranf, np.random.sample)


def parameters(*given: Any) -> tuple[Any, ...]:
    """Those of a draw as they are now: arrays, where they are sequences."""
    return tuple([np.array(p) if isinstance(p, Sequence) else p for p in given])


def standard(difference, scale):
    """The draw behind a draw."""
    return difference / np.where(np.equal(scale, 0), 1.0, scale)


def _uniform(primal):
    @rrule(primal)
    def _(source: Anything, low: Anything = 0.0, high: Anything = 1.0, size: Anything = None):
        y = primal(source, low, high, size)
        low, high = parameters(low, high)

        def draw_pullback(ȳ):
            z = standard(y - low, high - low)
            return (
                NoTangent(),
                unbroadcast(ȳ * (1 - z), np.shape(low)),
                unbroadcast(ȳ * z, np.shape(high)),
                NoTangent(),
            )

        return y, draw_pullback


def _location_scale(primal):
    @rrule(primal)
    def _(source: Anything, loc: Anything = 0.0, scale: Anything = 1.0, size: Anything = None):
        y = primal(source, loc, scale, size)
        loc, scale = parameters(loc, scale)

        def draw_pullback(ȳ):
            z = standard(y - loc, scale)
            return (
                NoTangent(),
                unbroadcast(ȳ, np.shape(loc)),
                unbroadcast(ȳ * z, np.shape(scale)),
                NoTangent(),
            )

        return y, draw_pullback


def _scale(primal):
    @rrule(primal)
    def _(source: Anything, scale: Anything = 1.0, size: Anything = None):
        y = primal(source, scale, size)
        (scale,) = parameters(scale)

        def draw_pullback(ȳ):
            z = standard(y, scale)
            return NoTangent(), unbroadcast(ȳ * z, np.shape(scale)), NoTangent()

        return y, draw_pullback


def _lognormal(primal):
    @rrule(primal)
    def _(source: Anything, mean: Anything = 0.0, sigma: Anything = 1.0, size: Anything = None):
        y = primal(source, mean, sigma, size)
        mean, sigma = parameters(mean, sigma)

        def draw_pullback(ȳ):
            z = standard(np.log(y) - mean, sigma)
            return (
                NoTangent(),
                unbroadcast(ȳ * y, np.shape(mean)),
                unbroadcast(ȳ * y * z, np.shape(sigma)),
                NoTangent(),
            )

        return y, draw_pullback


def _of_shape(primal, slope):
    @rrule(primal)
    def _(source: Anything, a: Anything, size: Anything = None):
        y = primal(source, a, size)
        (a,) = parameters(a)

        def draw_pullback(ȳ):
            return NoTangent(), unbroadcast(ȳ * slope(y, a), np.shape(a)), NoTangent()

        return y, draw_pullback


def by_exponent(y, a):
    """∂y/∂a of y = E^(1/a)."""
    return -y * np.log(y) / a


def pareto_slope(y, a):
    """∂y/∂a of y = exp(E / a) - 1."""
    return -(1 + y) * np.log1p(y) / a


def _triangular(primal):
    @rrule(primal)
    def _(source: Anything, left: Anything, mode: Anything, right: Anything, size: Anything = None):
        """The inverse of the distribution: a part U of the area is to the left of y."""
        y = primal(source, left, mode, right, size)
        left, mode, right = parameters(left, mode, right)

        def draw_pullback(ȳ):
            ȳ = np.asarray(ȳ)
            low = np.less_equal(y, mode)
            width, rise, fall = right - left, mode - left, right - mode
            u = np.sqrt(np.where(low, (y - left) ** 2, (right - y) ** 2))
            rise_or_1 = np.where(rise == 0, 1.0, rise)
            fall_or_1 = np.where(fall == 0, 1.0, fall)
            below = masked(ȳ * u / 2, low)  # y = left + √(U width rise)
            above = masked(ȳ * u / 2, ~low)  # y = right - √((1 - U) width fall)
            left_bar = masked(ȳ, low) - below * (1 / width + 1 / rise_or_1) + above / width
            mode_bar = below / rise_or_1 + above / fall_or_1
            right_bar = masked(ȳ, ~low) + below / width - above * (1 / width + 1 / fall_or_1)
            return (
                NoTangent(),
                unbroadcast(left_bar, np.shape(left)),
                unbroadcast(mode_bar, np.shape(mode)),
                unbroadcast(right_bar, np.shape(right)),
                NoTangent(),
            )

        return y, draw_pullback


NO_SHAPE = NotKnown(lambda: UnsupportedError("a draw has no derivative by its shape here"))
NO_PARAMETER = NotKnown(lambda: UnsupportedError("such a draw has no derivative by its parameters"))


def by_no_parameter(method: Any, n: int) -> None:
    """A draw with n parameters by which nobody has a formula: it is constant if they are."""

    @serves(method)
    def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        bars = [NO_PARAMETER if 0 < i <= n else NONE for i in range(len(args))]
        bars += [NONE if name == "size" else NO_PARAMETER for name in kwargs]
        read = [(x, call(read_list, x)[1]) for x in (*args, *kwargs.values()) if type(x) is list]
        zeros = [ZERO] * len(bars)

        def draw_pullback(ȳ: Any) -> Any:
            if is_zero(ȳ):
                return [NONE, *zeros]
            for x, back in read:
                back([NO_PARAMETER] * len(x))
            return [NONE, *bars]

        return fn(*args, **kwargs), draw_pullback


def read_list(xs: list[Any]) -> tuple[Any, ...]:
    """The items of a list, whose cotangents lie beside it."""
    return tuple([read_list(x) if type(x) is list else x for x in xs])


def _vonmises(primal):
    @rrule(primal)
    def _(source: Anything, mu: Anything, kappa: Anything, size: Anything = None):
        shape = np.shape(mu)

        def draw_pullback(ȳ):
            return NoTangent(), unbroadcast(ȳ, shape), NO_PARAMETER, NoTangent()

        return primal(source, mu, kappa, size), draw_pullback


def _multivariate_normal(primal):
    @rrule(primal)
    def _(source: Anything, mean: Anything, cov: Anything, size: Anything = None, **keywords):
        """By the covariance nobody has a formula: its square root is chosen anew at every point."""
        given = as_it_is(mean)

        def draw_pullback(ȳ):
            mean_bar = like_sequence(unbroadcast(ȳ, np.shape(given)), given)
            return NoTangent(), mean_bar, NO_PARAMETER, NoTangent()

        return primal(source, mean, cov, size, **keywords), draw_pullback


def _standard_gamma(primal):
    @rrule(primal)
    def _(source: Anything, shape: Anything, size: Anything = None, *more: Anything):
        def draw_pullback(ȳ):
            return NoTangent(), NO_SHAPE, *[NoTangent() for _ in range(1 + len(more))]

        return primal(source, shape, size, *more), draw_pullback


def _gamma(primal):
    @rrule(primal)
    def _(source: Anything, shape: Anything, scale: Anything = 1.0, size: Anything = None):
        y = primal(source, shape, scale, size)
        shape, scale = parameters(shape, scale)

        def draw_pullback(ȳ):
            scale_bar = unbroadcast(ȳ * standard(y, scale), np.shape(scale))
            return NoTangent(), NO_SHAPE, scale_bar, NoTangent()

        return y, draw_pullback


BY_NO_PARAMETER = {
    "beta": 2, "chisquare": 1, "noncentral_chisquare": 2, "f": 2, "noncentral_f": 3, "standard_t": 1,
    "wald": 2, "dirichlet": 1,
}  # fmt: skip
for _source in SOURCES:
    _gamma(_source.gamma)
    _standard_gamma(_source.standard_gamma)
    _uniform(_source.uniform)
    for _name in ("normal", "laplace", "logistic", "gumbel"):
        _location_scale(getattr(_source, _name))
    for _name in ("exponential", "rayleigh"):
        _scale(getattr(_source, _name))
    _lognormal(_source.lognormal)
    _of_shape(_source.weibull, by_exponent)
    _of_shape(_source.power, by_exponent)
    _of_shape(_source.pareto, pareto_slope)
    _triangular(_source.triangular)
    _vonmises(_source.vonmises)
    _multivariate_normal(_source.multivariate_normal)
    for _name, _n in BY_NO_PARAMETER.items():
        by_no_parameter(getattr(_source, _name), _n)

# -- draws that fill an array ----------------------------------------------------------------------

FILLING = [
    getattr(np.random.Generator, _name)
    for _name in ("random", "standard_normal", "standard_exponential", "standard_gamma")
]


def place_of_shape(fn: Any, n: int, keywords: list[str]) -> int | None:
    """Which argument of a draw is the shape of its distribution; n are given by position."""
    if fn is not np.random.Generator.standard_gamma or n + len(keywords) < 2:
        return None
    return 1 if n > 1 else n + keywords.index("shape")


@serves(*FILLING)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    parts = parted(fn, len(args), kwargs)
    given = (*args, *kwargs.values())
    zeros = [ZERO] * (1 + len(given))
    if (i := place_of_shape(fn, len(args), [*kwargs])) is not None:
        zeros[1 + i] = NO_SHAPE
    x = None if parts is None else outs_of(parts, given)[0]
    if x is None:
        return fn(*args, **kwargs), lambda ȳ: zeros
    taken = overwrite(x, lambda: fn(*args, **kwargs))

    def filling_pullback(ȳ):
        seed(x, ȳ)
        taken()
        return zeros

    return x, filling_pullback


# -- entries at random places ----------------------------------------------------------------------


def places_like(x: Any) -> Any:
    """The numbers of the entries, as an array that is drawn from as from `x`."""
    return numbered(x).astype(x.dtype if x.itemsize == 8 and x.dtype.kind == "f" else float)


non_differentiable(places_like)


def of_objects(primal, source, x, *args, **kwargs):
    """The draw from a list of objects: places of the array of them are drawn."""
    return primal(source, np.array(x), *args, **kwargs)


def _taking(primal):
    @rrule(primal)
    def _(source: Anything, x: np.ndarray, *args: Anything, **kwargs):
        places = primal(source, places_like(x), *args, **kwargs)
        places = np.asarray(places).astype(int)
        shape = x.shape

        def taking_pullback(ȳ):
            rest = [NoTangent() for _ in args]
            return NoTangent(), moved_back(np.asarray(ȳ), places, shape), *rest

        return np.reshape(x, -1)[places], taking_pullback

    @rrule(primal)
    def _(source: Anything, x: Sequence, *args: Anything, **kwargs):
        numbers = np.asarray(x)
        if numbers.dtype.kind == "O":
            y, objects_back = call(of_objects, primal, source, x, *args, **kwargs)
            return y, lambda ȳ: objects_back(ȳ)[2 : 4 + len(args)]
        if numbers.dtype.kind not in "fc":
            return opaque(primal, (source, x, *args), kwargs)
        given = as_it_is(x)
        y, back = call(primal, source, numbers, *args, **kwargs)

        def of_sequence_pullback(ȳ):
            _, _, x̄, *rest = back(ȳ)
            return NoTangent(), like_sequence(x̄, given), *rest[: len(args)]

        return y, of_sequence_pullback

    @rrule(primal)
    def _(source: Anything, x: int, *args: Anything, **kwargs):
        def whole_numbers_pullback(ȳ):
            return (ZeroTangent(),) * (2 + len(args))

        return primal(source, x, *args, **kwargs), whole_numbers_pullback


for _source in SOURCES:
    _taking(_source.permutation)
    _taking(_source.choice)


@rrule(np.random.Generator.permuted)
def _(source: Anything, x: np.ndarray, *, axis=None):
    places = permuted_places(source, x, axis)
    shape = x.shape

    def permuted_pullback(ȳ):
        return NoTangent(), moved_back(np.asarray(ȳ), places, shape)

    return np.reshape(x, -1)[places], permuted_pullback


def permuted_places(source: Any, x: Any, axis: Any) -> Any:
    """Which entries `source.permuted(x, axis=axis)` has."""
    return source.permuted(places_like(x), axis=axis).astype(int)


def shuffled_places(source: Any, x: Any, *axis: Any) -> Any:
    """Where the entries come from that `source.shuffle(x, axis)` leaves."""
    places: Any = [*range(len(x))] if isinstance(x, list) else places_like(x)
    source.shuffle(places, *axis)
    return places if isinstance(x, list) else places.astype(int)


def check_out(source: Any, x: Any, axis: Any, out: Any) -> None:
    """An error, NumPy's own, if there is no room for the result."""
    if not isinstance(out, np.ndarray) or out.shape != x.shape or out.dtype != x.dtype:
        source.permuted(x, axis=axis, out=out)
        raise refuse("rng.permuted with such an out=")


def not_shuffled(x: Any) -> UnsupportedError:
    """The error of shuffling something else."""
    return refuse(f"shuffle of a {type(x).__name__}")


non_differentiable(permuted_places, shuffled_places, check_out, not_shuffled)


@instead_of(np.random.Generator.permuted)
def permuted_into(source, x, *, axis=None, out=None):
    x = np.asarray(x)
    places = permuted_places(source, x, axis)
    y = np.reshape(x, -1)[places]
    if out is None:
        return y
    check_out(source, x, axis, out)
    out[...] = y
    return out


@instead_of(np.random.Generator.shuffle, np.random.RandomState.shuffle)
def shuffle(source, x, *axis, **named):
    if isinstance(x, list):
        x[:] = [x[i] for i in shuffled_places(source, x, *axis, *named.values())]
    elif isinstance(x, np.ndarray):
        places = shuffled_places(source, x, *axis, *named.values())
        x[...] = np.reshape(x, -1)[places]
    else:
        raise not_shuffled(x)


# -- types of draws --------------------------------------------------------------------------------

DRAWS = """
    random normal standard_normal uniform exponential standard_exponential lognormal laplace logistic
    gumbel rayleigh weibull pareto power gamma standard_gamma standard_cauchy integers poisson binomial
    rand randn random_sample randint
"""


def _typed(source: Any, method: Any) -> None:
    @transfers(method)
    def _(s: Any, call: Any, args: Any) -> Any:
        """By a small draw of a source that nobody else has; the extents of a draw are not known."""
        try:
            small = [sample_value(shrunk(x)) for x in args[1:]]
            n = len(small) - len(call.keywords)
            y = method(source(0), *small[:n], **dict(zip(call.keywords, small[n:], strict=True)))
        except (KeyError, TypeError, ValueError):  # then nothing is known
            return None
        return coarsened(known_value(y))


def shrunk(value: Any) -> Any:
    """A smaller number for one that may be an extent."""
    constant = getattr(value, "value", None)
    if type(constant) is int:
        return Const(min(constant, FEW))
    if type(constant) is tuple:
        return Const(tuple([min(n, FEW) if type(n) is int else n for n in constant]))
    return coarsened(value)


FEW = 8


def _source_of(make: Any, source: Any) -> None:
    @transfers(make)
    def _(s: Any, call: Any, args: Any) -> Any:
        return Known(source)


_source_of(np.random.default_rng, np.random.Generator)
_source_of(np.random.RandomState, np.random.RandomState)
non_differentiable(np.random.RandomState)
for _source, _make in ((np.random.Generator, np.random.default_rng), (np.random.RandomState,) * 2):
    for _name in DRAWS.split():
        if hasattr(_source, _name):
            _typed(_make, getattr(_source, _name))

del _make, _source, _name, _n
