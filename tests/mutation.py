"""What is asked of a function that writes to memory: value, gradient, final state, pullbacks."""

import copy
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import morula


def leaves(x: Any) -> list[Any]:
    """The numbers and arrays in a structure, in order."""
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, (list, tuple)):
        return [leaf for item in x for leaf in leaves(item)]
    return [x]


def with_leaves(x: Any, values: Any) -> Any:
    """The structure with other leaves."""
    if isinstance(x, dict):
        return {key: with_leaves(item, values) for key, item in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)([with_leaves(item, values) for item in x])
    return next(values)


def moved(args: Any, directions: Any, t: float) -> Any:
    """The arguments, moved along a direction."""
    found = [
        np.asarray(x + t * v, x.dtype) if isinstance(x, np.ndarray) else x + t * v if v else x
        for x, v in zip(leaves(args), directions, strict=True)
    ]
    return with_leaves(args, iter(found))


def same_bits(a: Any, b: Any) -> bool:
    """Are two structures the same to the last bit?"""
    pairs = zip(leaves(a), leaves(b), strict=True)
    return all(np.asarray(x).tobytes() == np.asarray(y).tobytes() for x, y in pairs)


def inner(a: Any, b: Any) -> float:
    """The real inner product of two structures."""
    pairs = zip(leaves(a), leaves(b), strict=True)
    return float(sum(np.sum(np.conj(x) * y).real for x, y in pairs))


def check_mutation(f: Callable[..., Any], *args: Any, rtol: float = 1e-6) -> Any:
    """Compare everything; returns the gradients."""
    plain = copy.deepcopy(args)
    value = f(*plain)
    left = copy.deepcopy(args)
    y, gradients = morula.withgradient(f, *left)
    assert type(y) is type(value)
    assert same_bits(y, value)
    assert same_bits(left, plain), f"the arguments are {left}, after the plain call {plain}"
    check_pullbacks(f, args, gradients)
    rng = np.random.default_rng(1)
    for _ in range(3):
        directions = [direction(rng, x) for x in leaves(args)]
        h = 1e-5
        ahead, behind = f(*moved(args, directions, h)), f(*moved(args, directions, -h))
        expected = (float(ahead) - float(behind)) / (2 * h)
        found = inner(gradients, with_leaves(args, iter(directions)))
        assert np.isclose(found, expected, rtol=rtol, atol=1e-7), f"{found}, expected {expected}"
    arrays = [x for x in (*leaves(gradients), *leaves(left)) if isinstance(x, np.ndarray)]
    for a, b in itertools.combinations(arrays, 2):
        assert not np.shares_memory(a, b) or any(a is x for x in leaves(left))
    return gradients


def check_pullbacks(f: Callable[..., Any], args: Any, gradients: Any) -> None:
    """A pullback may be called again, also after others, and after writes to the arguments."""
    first, second = copy.deepcopy(args), copy.deepcopy(args)
    y, back = morula.pullback(f, *first)
    _, other = morula.pullback(f, *second)
    _, third = morula.pullback(f, *first)  # writes to the same arrays again
    after = copy.deepcopy(first)
    third(type(y)(1))
    bars, others, again = [pull(type(y)(1)) for pull in (back, other, back)]
    assert same_bits(bars, again)
    assert same_bits(first, after)
    for found in (bars, others):  # compiled programs round otherwise, in the last digits
        for x̄, expected in zip(leaves(found), leaves(gradients), strict=True):
            assert type(x̄) is type(expected)
            if expected is not None:
                np.testing.assert_allclose(x̄, expected, rtol=1e-13, atol=1e-15 * scale(gradients))


def scale(gradients: Any) -> float:
    """The largest entry of all gradients."""
    sizes = [np.max(np.abs(x̄), initial=0.0) for x̄ in leaves(gradients) if x̄ is not None]
    return float(max(sizes, default=0.0))


def direction(rng: Any, x: Any) -> Any:
    """A random direction in the space of x."""
    if not isinstance(x, (float, complex, np.ndarray, np.generic)):
        return 0
    v = rng.standard_normal(np.shape(x))
    if np.iscomplexobj(x):
        v = v + 1j * rng.standard_normal(np.shape(x))
    return v if np.shape(x) else v.item() if isinstance(v, np.ndarray) else v
