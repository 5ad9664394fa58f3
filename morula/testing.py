"""Checks of rules and gradients against finite differences, for test-suites here and downstream.

    check_rrule(fn, *args, **kwargs)       the reverse rule that serves this call
    check_frule(fn, *args, **kwargs)       the forward rule that serves this call
    check_gradient(f, *args, **kwargs)     morula.gradient, entry by entry

Each raises AssertionError and says which cotangent, entry or property is wrong. What is expected
never comes from a rule: it is a central difference, taken in double precision where the arguments
are of a shorter type. The options `order`, `rtol`, `atol` and `seed` go to the checker; a keyword
of that name which the rule (or `f`) itself takes goes there instead.
"""

from __future__ import annotations

import copy
import inspect
import math
import numbers
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from morula.core.context import adjoint_if_any, isolated
from morula.core.cotangents import (
    AbstractZero,
    NoTangent,
    Tangent,
    Thunk,
    ZeroTangent,
    project_to,
    unthunk,
)
from morula.core.errors import RuleError, type_names
from morula.core.registry import Rule, apply_rule, find_rrule, registry
from morula.core.traits import adjoint_object, materialise

__all__ = ["check_frule", "check_gradient", "check_rrule"]


@dataclass(frozen=True)
class Precision:
    """How far to step, and how closely to agree, where a computation has this precision."""

    eps: float
    step: float
    rtol: float
    atol: float


# By the letter of the real dtype; the steps are near eps ** (1/3), the best of central differences.
PRECISIONS = {
    "e": Precision(1e-3, 1e-1, 3e-2, 3e-2),
    "f": Precision(1.2e-7, 5e-3, 1e-3, 1e-4),
    "d": Precision(2.3e-16, 6e-6, 1e-6, 1e-8),
    "g": Precision(1.1e-19, 4e-7, 1e-6, 1e-8),
}
_REAL_LETTER = {"e": "e", "f": "f", "d": "d", "g": "g", "F": "f", "D": "d", "G": "g"}
_WIDER = {"e": np.float64, "f": np.float64, "F": np.complex128}
_OPTIONS: dict[str, Any] = {"order": 1, "rtol": None, "atol": None, "seed": 0}
_ENTRIES = 60  # check_gradient looks at this many entries of each array, drawn at random
_ATTEMPTS = 8  # and moves off kinks this often

Path = tuple[Any, ...]


def check_rrule(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Check the reverse rule that serves the call `fn(*args, **kwargs)`.

    It asserts that a registered rule serves the call; that its value is the plain call's bit for
    bit, type included, and that the arguments are left as the plain call leaves them; that the
    pullback gives one cotangent for each argument, each in the space of its argument (shape, dtype,
    real where the argument is real); that Re⟨x̄, v⟩ = Re⟨ȳ, J v⟩ for a random ȳ and random v, where
    J v is a central difference; that a second call of the pullback, and a call with thunks in place
    of cotangents, give the same. An integer argument is moved along the real line if the rule gives
    it a cotangent; so is a keyword argument.

    Args:
        fn: the primal, any callable.
        args: its positional arguments: numbers, arrays, structures of them, or constants.
        kwargs: its keyword arguments. Options of the checker: `order=2` also checks the derivative
            of the rule itself; `rtol`, `atol`: tolerances in place of those of the dtype; `seed` of
            the random directions.

    Raises:
        AssertionError: the rule is wrong; the message names the cotangent and the rule.

    >>> import math
    >>> check_rrule(math.hypot, 3.0, 4.0)
    """
    rule = find_rrule(fn, args, ()) or find_rrule(fn, args, kwargs)
    assert rule is not None, f"no rule of {_name(fn)} serves {_call(args, kwargs)}"
    options = _take_options(kwargs, {*rule.positional, *rule.keyword_only})
    rule = find_rrule(fn, args, kwargs)
    assert rule is not None, f"no rule of {_name(fn)} serves {_call(args, kwargs)}"
    check = _Check(f"the rule of {_name(fn)}", fn, args, kwargs, options, rule.function.__code__)
    check.value_and_arguments(rule)
    check.pullbacks(lambda a, k: apply_rule(rule, a, k))
    if options["order"] > 1:
        _check_second_order(fn, args, kwargs, options)


def check_frule(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Check the forward rule that serves the call `fn(*args, **kwargs)`.

    It asserts that a registered rule serves the call, that its value is the plain call's bit for
    bit, and that `pushforward(ẋ, ...)` is the central difference of `fn` along random tangents, of
    the shape and dtype of the value. Options as for `check_rrule`.

    Raises:
        AssertionError: the rule is wrong; the message names it.
    """
    entry = registry.get(fn)
    rule = None if entry is None else entry.find("forward", args)
    assert rule is not None, f"no forward rule of {_name(fn)} serves {_call(args, kwargs)}"
    options = _take_options(kwargs, {*rule.positional, *rule.keyword_only})
    what = f"the forward rule of {_name(fn)}"
    check = _Check(what, fn, args, kwargs, options, rule.function.__code__)
    check.value_and_arguments(rule)
    check.pushforward(rule)


def check_gradient(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Compare `morula.gradient(f, *args, **kwargs)` with central differences, entry by entry.

    A point at a kink is moved: where the differences of a step and of half that step do not agree,
    or the slopes to both sides differ, the arguments are shifted a little and the check starts
    again. Of large arrays a random choice of entries is compared.

    Args:
        f: function of one real result.
        args: numbers, arrays, structures of them; everything else is constant.
        kwargs: passed on. Options: `rtol`, `atol`, `seed`.

    Raises:
        AssertionError: names the worst entry by its path, what it is and what it should be; or says
            that no smooth point was found.

    >>> check_gradient(lambda p: p["a"] * p["b"][0] ** 2, {"a": 2.0, "b": [3.0]})
    """
    from morula import gradient

    options = _take_options(kwargs, _parameters_of(f))
    check = _Check(f"the gradient of {_name(f)}", f, args, kwargs, options)
    check.gradient(lambda *xs: gradient(f, *xs, **kwargs))


def _check_second_order(fn: Any, args: Any, kwargs: Any, options: dict[str, Any]) -> None:
    """The derivative of x ↦ x̄, by Morula against differences of the checked first order."""
    import morula

    pullback = getattr(morula, "pullback", None)
    if pullback is None:  # the core is not there yet
        return
    first = _Check(f"the rule of {_name(fn)}", fn, args, kwargs, options)
    ȳ = first.seed(first.run(args))

    def cotangents(*xs: Any) -> Any:
        _, back = pullback(fn, *xs, **kwargs)
        return back(ȳ)

    def differentiated(a: Any, k: Any) -> Any:
        return pullback(cotangents, *a)

    what = f"the derivative of the rule of {_name(fn)}"
    check = _Check(what, cotangents, args, {}, options)
    check.compare_value = False
    check.pullbacks(differentiated)


class _Check:
    """One call, and what is asked of its rule."""

    def __init__(
        self, what: str, fn: Any, args: Any, kwargs: Any, options: dict[str, Any], code: Any = None
    ) -> None:
        self.what = what
        self.where = f"\n  {code.co_filename}:{code.co_firstlineno}" if code is not None else ""
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.names = [*kwargs]
        self.options = options
        self.rng = np.random.default_rng(options["seed"])
        self.compare_value = True

    # -- running the primal ---------------------------------------------------------------------

    def run(self, values: Any) -> Any:
        """The plain call on copies of the positional arguments, then the keyword ones."""
        n = len(self.args)
        values = [_copied(v) for v in values]
        named = dict(zip(self.names, values[n:], strict=False)) if len(values) > n else self.kwargs
        return self.fn(*values[:n], **_copied(named))

    def all_values(self) -> list[Any]:
        return [*self.args, *self.kwargs.values()]

    def label(self, i: int) -> str:
        n = len(self.args)
        return str(i) if i < n else f"of the keyword {self.names[i - n]}"

    def fail(self, message: str) -> None:
        call = _call(self.args, self.kwargs)
        raise AssertionError(f"{message}\n  called with {call}{self.where}")

    # -- values ---------------------------------------------------------------------------------

    def value_and_arguments(self, rule: Rule) -> None:
        """The value is the plain call's; the arguments are left as that leaves them."""
        ours, plain = _copied((self.args, self.kwargs)), _copied((self.args, self.kwargs))
        expected = self.fn(*plain[0], **plain[1])
        with isolated():
            pair = rule.function(*ours[0], **ours[1])
        if type(pair) is not tuple or len(pair) != 2:
            self.fail(f"{self.what} returned no pair of value and pullback, but {pair!r}")
        if not _identical(pair[0], expected):
            self.fail(f"the value of {self.what} is {pair[0]!r}, the plain call's is {expected!r}")
        if not _identical(ours, plain):
            self.fail(f"{self.what} changed its arguments")

    # -- seeds and directions -------------------------------------------------------------------

    def random(self, x: Any, scaled: bool) -> Any:
        """A random vector of the tangent space of the leaf `x`."""
        data = np.asarray(_data(x))
        v: Any = self.rng.standard_normal(data.shape)
        if data.dtype.kind == "c" or isinstance(x, complex):
            v = v + 1j * self.rng.standard_normal(data.shape)
        elif data.dtype.kind == "O" and _kind(x) == "c":
            v = v.astype(complex) + 1j * float(self.rng.standard_normal())
        if scaled and data.size and data.dtype.kind != "O":
            v = v * max(1.0, float(np.sqrt(np.mean(np.abs(data.astype(complex)) ** 2))))
        return v

    def seed(self, y: Any) -> Any:
        """A random cotangent that mirrors `y`."""
        integers_count = not any(
            _kind(leaf) in ("f", "c") for x in self.all_values() for _, leaf in _leaves(x)
        )
        found = {}
        for path, leaf in _leaves(y):
            if _kind(leaf) == "i" and not integers_count:
                found[path] = ZeroTangent()
            else:
                found[path] = _like(leaf, self.random(leaf, scaled=False))
        return _mirror(y, found)

    def seeds(self, y: Any) -> Iterator[Any]:
        """A full seed, and for a tuple seeds with one entry that is not zero."""
        ȳ = self.seed(y)
        yield ȳ
        if type(y) is tuple and len(y) > 1:
            for i, part in enumerate(ȳ):
                if not isinstance(part, AbstractZero):
                    yield tuple(p if i == j else ZeroTangent() for j, p in enumerate(ȳ))

    # -- reverse --------------------------------------------------------------------------------

    def pullbacks(self, rule: Callable[[Any, Any], Any]) -> None:
        """What the pullback gives, for each seed."""
        args, kwargs = _copied((self.args, self.kwargs))
        values = [*args, *kwargs.values()]
        with isolated():
            y, back = rule(args, kwargs)
        state = _copied(values)
        untouched = _identical(state, self.all_values())
        for ȳ in self.seeds(y):
            if not any(_kind(part) for _, part in _leaves(ȳ)):
                continue
            first = self.call(back, ȳ, y, values)
            if len(first) < len(args):
                self.fail(f"{self.what} gave {len(first)} cotangents for {len(args)} arguments")
            for i, (x, x̄) in enumerate(zip(values, first, strict=False)):
                self.space(i, x, x̄)
            self.inner_products(y, ȳ, first)
            if untouched and not _identical(values, state):
                self.fail(f"the pullback of {self.what} changed an argument")
            frozen = _copied(first)
            if not _identical(self.call(back, ȳ, y, values), frozen):
                self.fail(f"a second call of the pullback of {self.what} gave something else")
            for form, other in self.other_forms(y, ȳ):
                if not _close(self.call(back, other, y, values), frozen):
                    self.fail(f"the pullback of {self.what} gave something else for {form}")

    def call(self, back: Any, ȳ: Any, y: Any, values: list[Any]) -> tuple[Any, ...]:
        """The cotangents of all arguments, those of mutable ones out of their adjoint objects."""
        with isolated():
            try:
                cotangents = list(back(project_to(y)(ȳ)))
            except RuleError as error:
                raise AssertionError(str(error)) from error
            for i, x in enumerate(values[: len(cotangents)]):
                if _is_mutable(x) and adjoint_if_any(x) is not None:
                    cotangents[i] = materialise(x, cotangents[i], adjoint_if_any)
        return tuple(_forced(x̄) for x̄ in cotangents)

    def other_forms(self, y: Any, ȳ: Any) -> Iterator[tuple[str, Any]]:
        """The same seed, spelt otherwise."""
        if type(ȳ) is tuple:
            parts = [p if isinstance(p, AbstractZero) else Thunk(lambda p=p: p) for p in ȳ]
            yield "a tuple of thunks", tuple(parts)
            fields = {i: p for i, p in enumerate(ȳ) if not isinstance(p, AbstractZero)}
            yield "a Tangent[tuple]", Tangent[tuple](fields)
        elif _thunks_reach_the_core():
            yield "a thunk", Thunk(lambda: ȳ)

    def space(self, i: int, x: Any, x̄: Any) -> None:
        """Is `x̄` in the tangent space of `x`?"""
        for path, leaf in _leaves(x):
            part = _at(x̄, path)
            if part is None or isinstance(part, AbstractZero):
                continue
            wrong = _not_in_space(leaf, part)
            if wrong:
                where = _path_text(path)
                self.fail(f"cotangent {self.label(i)}{where} of {self.what} {wrong}")
        if not _leaves(x) and not _is_structure(x) and _kind(x̄):
            self.fail(
                f"cotangent {self.label(i)} of {self.what} is {x̄!r}, but a {type(x).__name__} has "
                "no tangent space"
            )

    def inner_products(self, y: Any, ȳ: Any, cotangents: tuple[Any, ...]) -> None:
        """Re⟨x̄, v⟩ against Re⟨ȳ, J v⟩, one argument at a time."""
        values = self.all_values()
        for i, x̄ in enumerate(cotangents):
            direction = {}
            for path, leaf in _leaves(values[i]):
                part = _at(x̄, path)
                zero = part is None or isinstance(part, AbstractZero)
                if _kind(leaf) in ("f", "c") or not zero:
                    direction[path] = self.random(leaf, scaled=True)
            if not direction:
                continue
            got = size = 0.0
            for path, v in direction.items():
                part = _at(x̄, path)
                if part is not None and not isinstance(part, AbstractZero):
                    part = _array(part, values[i], path)
                    got += float(np.sum((np.conj(part) * v).real))
                    size += float(np.sum(np.abs(part) * np.abs(v)))
            expected, noise = self.difference(i, direction, y, ȳ)
            self.agree(f"cotangent {self.label(i)} of {self.what}", got, expected, size, noise, y)

    def difference(self, i: int, direction: dict[Path, Any], y: Any, ȳ: Any) -> tuple[float, float]:
        """Re⟨ȳ, (f(x + h v) − f(x − h v)) / 2h⟩, and the rounding errors to expect in it."""
        h = self.evaluated_at(y).step
        above = self.moved({i: direction}, h)
        below = self.moved({i: direction}, -h)
        slope = noise = 0.0
        for path, part in _leaves(ȳ):
            w = _data_array(part)
            up, down = _data_array(_at(above, path)), _data_array(_at(below, path))
            slope += float(np.sum((np.conj(w) * ((up - down) / (2 * h))).real))
            noise += float(np.sum(np.abs(w) * np.abs(up)))
        return slope, 4 * self.evaluated_at(y).eps * noise / h

    def moved(self, directions: dict[int, dict[Path, Any]], h: float) -> Any:
        """The plain call at x + h v, in double precision where the function takes it."""

        def at(wide: bool, whole: type = float) -> list[Any]:
            return [
                _shifted(x, directions.get(i, {}), h, wide, whole)
                for i, x in enumerate(self.all_values())
            ]

        try:
            return self.run(at(wide=True))
        except (TypeError, ValueError):
            pass
        try:
            return self.run(at(wide=False))
        except TypeError:  # Decimal goes with int, but not with float
            return self.run(at(wide=False, whole=Decimal))

    def evaluated_at(self, y: Any) -> Precision:
        """The precision that differences are taken in."""
        try:
            letters = [_letter(leaf) for _, leaf in _leaves(self.moved({}, 0.0))]
        except (TypeError, ValueError):
            letters = [_letter(leaf) for _, leaf in _leaves(y)]
        return _coarsest(letters)

    def agree(
        self, what: str, got: float, expected: float, size: float, noise: float, y: Any
    ) -> None:
        """Do both inner products agree, in the precision of the arguments and the value?"""
        leaves = [leaf for x in (*self.all_values(), y) for _, leaf in _leaves(x)]
        precision = _coarsest([_letter(leaf) for leaf in leaves])
        rtol = precision.rtol if self.options["rtol"] is None else self.options["rtol"]
        atol = precision.atol if self.options["atol"] is None else self.options["atol"]
        tolerance = rtol * max(size, abs(expected)) + atol + noise
        if not abs(got - expected) <= tolerance:
            self.fail(
                f"{what} is wrong: along a random direction it gives {got:.10g}, finite "
                f"differences give {expected:.10g} (tolerance {tolerance:.1e})"
            )

    # -- forward --------------------------------------------------------------------------------

    def pushforward(self, rule: Rule) -> None:
        """The pushforward along random tangents, against differences of every entry."""
        args, kwargs = _copied((self.args, self.kwargs))
        y, push = rule.function(*args, **kwargs)
        directions: dict[int, dict[Path, Any]] = {}
        tangents = []
        for i, x in enumerate(args):
            found = {p: leaf for p, leaf in _leaves(x) if _kind(leaf) in ("f", "c")}
            directions[i] = {p: self.random(leaf, scaled=True) for p, leaf in found.items()}
            parts = {p: _like(leaf, directions[i][p]) for p, leaf in found.items()}
            # what was rounded to the dtype of x is the direction
            directions[i] = {p: _data_array(v) for p, v in parts.items()}
            tangents.append(_mirror(x, parts) if parts else NoTangent())
        ẏ = _forced(push(*tangents))
        precision = self.evaluated_at(y)
        h = precision.step
        above, below = self.moved(directions, h), self.moved(directions, -h)
        for path, leaf in _leaves(y):
            got = _at(ẏ, path)
            expected = (_data_array(_at(above, path)) - _data_array(_at(below, path))) / (2 * h)
            if got is None or isinstance(got, AbstractZero):
                got = np.zeros(np.shape(expected))
            elif _kind(leaf) != "i" and (wrong := _not_in_space(leaf, got)):
                self.fail(f"the tangent{_path_text(path)} of {self.what} {wrong}")
            noise = 4 * precision.eps * np.abs(_data_array(_at(above, path))) / h
            difference = np.abs(_data_array(got) - expected) - noise
            if np.size(difference) == 0:
                continue
            worst = np.unravel_index(np.argmax(difference), np.shape(difference))
            scale = float(np.max(np.abs(expected)))
            self.agree(
                f"the tangent{_path_text((*path, *map(int, worst)))} of {self.what}",
                float(np.abs(_data_array(got) - expected)[worst]),
                0.0,
                scale,
                float(noise[worst]),
                y,
            )

    # -- gradients ------------------------------------------------------------------------------

    def gradient(self, gradient_of: Callable[..., Any]) -> None:
        """Every entry of the gradient against a difference, off the kinks."""
        original = self.args
        for _ in range(_ATTEMPTS):
            slopes = self.slopes()
            if slopes is not None:
                break
            self.args = tuple(self.nudged(x) for x in self.args)
        else:
            self.args = original
            self.fail(f"{self.what}: no point near the arguments where differences settle")
        found = gradient_of(*_copied(self.args))
        leaves = [leaf for x in self.args for _, leaf in _leaves(x)]
        precision = _coarsest([_letter(leaf) for leaf in leaves])
        rtol = precision.rtol if self.options["rtol"] is None else self.options["rtol"]
        atol = precision.atol if self.options["atol"] is None else self.options["atol"]
        worst: tuple[float, str] = (0.0, "")
        for i, path, index, expected, noise in slopes or ():
            part = _at(found[i], path)
            leaf = _at(self.args[i], path)
            if part is None or isinstance(part, AbstractZero):
                got = 0.0
            else:
                if wrong := _not_in_space(leaf, part):
                    self.fail(f"{self.what} at args[{i}]{_path_text(path)} {wrong}")
                got = _array(part, self.args[i], path)[index]
            scale = max(abs(expected), self.scale * 1e-3)
            tolerance = 10 * rtol * scale + atol * max(1.0, self.scale) + noise
            excess = abs(got - expected) / tolerance
            if not excess <= max(worst[0], 1.0):
                text = (
                    f"args[{i}]{_path_text((*path, *index))} is {got:.6g}, should be {expected:.6g}"
                )
                worst = (math.inf if math.isnan(excess) else excess, text)
        if worst[1]:
            self.fail(f"{self.what} is wrong; worst entry: {worst[1]}")

    def slopes(self) -> list[tuple[Any, ...]] | None:
        """(argument, path, index, derivative, noise) of the entries; None at a kink."""
        rng = np.random.default_rng(self.options["seed"])
        y = self.moved({}, 0.0)
        base = float(_data_array(y).reshape(()))
        precision = _coarsest([_letter(y)])
        found, sizes = [], [0.0]
        for i, x in enumerate(self.args):
            for path, leaf in _leaves(x):
                shape = np.shape(_data(leaf))
                indices = list(np.ndindex(*shape))
                if len(indices) > _ENTRIES:
                    indices = [indices[k] for k in rng.permutation(len(indices))[:_ENTRIES]]
                for index in indices:
                    entry = complex(_data_array(leaf)[index])
                    h = precision.step * max(1.0, abs(entry))
                    slope: Any = 0.0
                    for unit in (1, 1j) if _kind(leaf) == "c" else (1,):
                        e = np.zeros(shape, complex if unit == 1j else float)
                        e[index] = unit
                        along = self.along(i, path, e, h, base)
                        if along is None:
                            return None
                        slope = slope + unit * along
                    noise = 8 * precision.eps * abs(base) / h
                    found.append((i, path, index, slope, noise))
                    sizes.append(abs(slope))
        self.scale = max(sizes)
        return found

    def along(self, i: int, path: Path, e: Any, h: float, base: float) -> float | None:
        """The derivative along `e`, or None if the differences do not settle."""

        def at(t: float) -> float:
            return float(_data_array(self.moved({i: {path: e}}, t)).reshape(()))

        up, down, half_up, half_down = at(h), at(-h), at(h / 2), at(-h / 2)
        whole, half = (up - down) / (2 * h), (half_up - half_down) / h
        bend, half_bend = (up - 2 * base + down) / h, (half_up - 2 * base + half_down) / (h / 2)
        scale = max(1.0, abs(whole), abs(half), abs(base))
        if not all(map(math.isfinite, (up, down, whole))):
            return None
        if abs(bend) > 1e-3 * scale and abs(half_bend) > 0.75 * abs(bend):
            return None
        if abs(whole - half) > 1e-4 * scale:
            return None
        return (4 * half - whole) / 3

    def nudged(self, x: Any) -> Any:
        """The argument, moved a little at random."""
        direction = {
            path: self.random(leaf, scaled=True)
            for path, leaf in _leaves(x)
            if _kind(leaf) in ("f", "c")
        }
        return _shifted(x, direction, 1e-2, wide=False)


# -- structures: a value as a dict from paths to the leaves that are numbers or arrays -------------


def _children(x: Any) -> list[tuple[Any, Any]] | None:
    """The parts of a structure by key; None: it is none."""
    if isinstance(x, (tuple, list)):
        return list(enumerate(x))
    if isinstance(x, dict):
        return list(x.items())
    plain = (type, ModuleType, FunctionType, BuiltinFunctionType, AbstractZero, Thunk, Tangent)
    if isinstance(x, plain) or _kind(x) or callable(x) or type(x).__module__ == "builtins":
        return None
    fields = getattr(x, "__dict__", None)
    return list(fields.items()) if isinstance(fields, dict) and fields else None


def _is_structure(x: Any) -> bool:
    return _children(x) is not None


def _leaves(x: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """The numbers and arrays in `x`, with their paths."""
    if isinstance(x, Tangent):
        return [leaf for key, part in x.items() for leaf in _leaves(part, (*path, key))]
    if _kind(x):
        return [(path, x)]
    return [leaf for key, part in _children(x) or () for leaf in _leaves(part, (*path, key))]


def _at(x: Any, path: Path) -> Any:
    """The part of `x`, or of its cotangent, at a path."""
    for key in path:
        x = unthunk(x)
        if x is None or isinstance(x, AbstractZero):
            return x
        x = x[key] if isinstance(x, (tuple, list, dict, Tangent)) else getattr(x, key)
    return unthunk(x)


def _rebuilt(x: Any, parts: list[tuple[Any, Any]]) -> Any:
    """A structure like `x` with other parts."""
    if isinstance(x, tuple):
        values = [part for _, part in parts]
        return type(x)(*values) if hasattr(x, "_fields") else type(x)(values)
    new = copy.copy(x)
    if isinstance(x, list):
        new[:] = [part for _, part in parts]
    elif isinstance(x, dict):
        new.update(parts)
    else:
        for key, part in parts:
            object.__setattr__(new, key, part)
    return new


def _mirror(x: Any, found: dict[Path, Any], path: Path = ()) -> Any:
    """A cotangent that mirrors `x`, with what was found at its paths."""
    if path in found:
        return found[path]
    parts = _children(x)
    if parts is None:
        return NoTangent()
    if isinstance(x, (tuple, list, dict)):
        return _rebuilt(x, [(k, _mirror(p, found, (*path, k))) for k, p in parts])
    return Tangent[type(x)]({k: _mirror(p, found, (*path, k)) for k, p in parts})


def _shifted(
    x: Any, direction: dict[Path, Any], h: float, wide: bool, whole: type = float, path: Path = ()
) -> Any:
    """`x + h v`; with `wide`, short floats become doubles; an integer becomes a `whole`."""
    if _kind(x):
        return _leaf_shifted(x, direction.get(path), h, wide, whole)
    parts = _children(x)
    if not parts:
        return x
    moved = [(k, _shifted(p, direction, h, wide, whole, (*path, k))) for k, p in parts]
    if all(new is old for (_, new), (_, old) in zip(moved, parts, strict=True)):
        return x
    return _rebuilt(x, moved)


def _leaf_shifted(x: Any, v: Any, h: float, wide: bool, whole: type) -> Any:
    if hasattr(x, "dtype"):
        target = _WIDER.get(x.dtype.char) if wide else None
        if v is None:
            return x if target is None else x.astype(target)
        if _is_sparse(x):
            new = x.astype(target or np.result_type(x.dtype, np.float64 if wide else x.dtype))
            new.data = new.data + h * v
            return new
        short = target or (x.dtype if x.dtype.kind in "fc" else np.float64)
        if isinstance(x, np.generic):
            integer = x.dtype.kind not in "fc" and whole is not float
            return (
                whole(int(x)) + whole(float(h * v)) if integer else np.dtype(short).type(x + h * v)
            )
        moved = x.astype(short)
        return (moved + np.asarray(h * v).astype(short)) if np.ndim(x) else _zero_d(moved, h * v)
    if v is None:
        return x
    if isinstance(x, (float, int)):
        kind = float if isinstance(x, float) else whole
        return kind(x) + kind(h * float(v))
    if isinstance(x, complex):
        return x + h * complex(v)
    return x + _number_like(x, h * v)


def _zero_d(x: Any, step: Any) -> Any:
    return np.asarray(x + step, dtype=x.dtype)


# -- leaves ----------------------------------------------------------------------------------------


def _is_sparse(x: Any) -> bool:
    return type(x).__module__.startswith("scipy.sparse")


def _kind(x: Any) -> str:
    """i: integer, f: real, c: complex number or array; empty: something else."""
    if isinstance(x, bool):
        return ""
    if isinstance(x, (np.ndarray, np.generic)) or _is_sparse(x) or _is_array_like(x):
        kind = x.dtype.kind
        return {"i": "i", "u": "i", "f": "f", "c": "c"}.get(kind, "")
    if isinstance(x, int):
        return "i"
    if isinstance(x, (numbers.Real, Decimal)):
        return "f"
    return "c" if isinstance(x, numbers.Complex) else ""


def _is_array_like(x: Any) -> bool:
    """An array of another library, such as JAX's."""
    return hasattr(x, "dtype") and hasattr(x, "shape") and hasattr(x, "__array__")


def _data(x: Any) -> Any:
    """The numbers of a leaf: for a sparse matrix those of its pattern."""
    return x.data if _is_sparse(x) else x


def _data_array(x: Any) -> Any:
    """A leaf as an array of doubles or longer."""
    x = unthunk(x)
    if isinstance(x, AbstractZero) or x is None:
        return np.zeros(())
    if _is_sparse(x):
        x = x.toarray()
    a = np.asarray(x)
    if a.dtype.kind == "O":
        a = np.asarray(complex(x) if _kind(x) == "c" else float(x))
    if a.dtype.char in _WIDER:
        return a.astype(_WIDER[a.dtype.char])
    return a.astype(np.float64) if a.dtype.kind in "iub" else a


def _array(x̄: Any, x: Any, path: Path) -> Any:
    """A cotangent as an array over the entries that a direction of the primal has."""
    primal = _at(x, path)
    if not _is_sparse(primal):
        return _data_array(x̄)
    if _is_sparse(x̄) and x̄.format == primal.format and x̄.data.shape == primal.data.shape:
        return _data_array(x̄.data)
    coordinates = primal.tocoo()
    assert coordinates.data.shape == primal.data.shape, "duplicates in a sparse matrix"
    return _data_array(x̄)[coordinates.coords]


def _letter(x: Any) -> str:
    """The letter of the real dtype that a leaf is computed in."""
    dtype = getattr(x, "dtype", None)
    return _REAL_LETTER.get(getattr(dtype, "char", "d"), "d")


def _coarsest(letters: list[str]) -> Precision:
    return max((PRECISIONS[k] for k in letters), key=lambda p: p.eps, default=PRECISIONS["d"])


def _number_like(x: Any, value: Any) -> Any:
    """A number of the type of `x`: Fraction, Decimal, mpf, …."""
    value = complex(value)
    return type(x)(value.real if value.imag == 0 and _kind(x) != "c" else value)


def _like(x: Any, v: Any) -> Any:
    """The array `v` as a member of the tangent space of the leaf `x`."""
    if _is_sparse(x):
        new = x.astype(np.result_type(x.dtype, np.float16)) if _kind(x) != "i" else x.astype(float)
        new.data = v.astype(new.data.dtype)
        return new
    if hasattr(x, "dtype"):
        dtype = x.dtype if _kind(x) != "i" else np.dtype(np.float64)
        v = np.asarray(v)
        if isinstance(x, np.generic):
            return dtype.type(v)
        if isinstance(x, np.ndarray):
            return v.astype(dtype)
        return type(x).__array_namespace__(x).asarray(v, dtype=dtype)
    if isinstance(x, (float, int)):
        return float(v)
    return complex(v) if isinstance(x, complex) else _number_like(x, v)


def _not_in_space(x: Any, x̄: Any) -> str:
    """What is wrong with `x̄` as a cotangent of the leaf `x`; empty: nothing."""
    if not _kind(x̄):
        return f"is a {type(x̄).__name__}, which is no number or array"
    if np.shape(x̄) != np.shape(x):
        return f"has shape {np.shape(x̄)}, expected {np.shape(x)}"
    if _kind(x̄) == "c" and _kind(x) != "c":
        return "is complex, but the argument is real"
    if hasattr(x, "dtype"):
        dtype = np.dtype(np.float64) if _kind(x) == "i" else x.dtype
        if getattr(x̄, "dtype", np.dtype(type(x̄))) != dtype:
            return f"has dtype {getattr(x̄, 'dtype', type(x̄).__name__)}, expected {dtype}"
        if isinstance(x, np.ndarray) != isinstance(x̄, np.ndarray):
            return f"is a {type(x̄).__name__}, expected a {type(x).__name__}"
        return ""
    expected = float if isinstance(x, (int, float)) else type(x)
    if not isinstance(x̄, expected):
        return f"is a {type(x̄).__name__}, expected a {expected.__name__}"
    return ""


# -- copies and comparisons ------------------------------------------------------------------------


def _copied(x: Any) -> Any:
    """A deep copy, as far as there can be one (generators and modules have none)."""
    if isinstance(x, (tuple, list)) and type(x) in (tuple, list):
        return type(x)([_copied(part) for part in x])
    if type(x) is dict:
        return {k: _copied(part) for k, part in x.items()}
    if isinstance(x, AbstractZero):
        return x
    if type(x) is np.ndarray and x.dtype.kind != "O":
        strided = x.copy(order="K")
        return strided if strided.strides == x.strides else _same_strides(x)
    try:
        return copy.deepcopy(x)
    except TypeError:
        return x


def _same_strides(x: Any) -> Any:
    """A copy of a view that is not contiguous, not contiguous either."""
    if x.size == 0 or 0 in x.strides:
        return x.copy(order="K")
    wide = np.empty([2 * n for n in x.shape], x.dtype)
    view = wide[tuple(slice(None, None, -2) if s < 0 else slice(None, None, 2) for s in x.strides)]
    view[...] = x
    return view


def _identical(a: Any, b: Any) -> bool:
    """The same type, structure and bits."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, float) and not hasattr(a, "dtype"):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, complex) and not hasattr(a, "dtype"):
        return _identical(a.real, b.real) and _identical(a.imag, b.imag)
    if isinstance(a, (np.ndarray, np.generic)):
        if a.dtype.kind == "O":
            return a.shape == b.shape and all(map(_identical, a.ravel(), b.ravel()))
        return bool(a.dtype == b.dtype and a.shape == b.shape and _same_bits(a, b))
    if _is_sparse(a):
        return a.shape == b.shape and _identical(a.toarray(), b.toarray())
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_identical, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(_identical(a[k], b[k]) for k in a)
    if isinstance(a, Tangent):
        return _identical(dict(a.items()), dict(b.items()))
    fields = _children(a)
    if fields is not None:
        return _identical(dict(fields), dict(_children(b) or ()))
    if isinstance(a, Iterator) or type(a).__eq__ is object.__eq__:  # type: ignore[comparison-overlap]
        return True  # nothing more can be said without using it up
    return bool(a == b) or a != a


def _same_bits(a: Any, b: Any) -> bool:
    if a.dtype.char in "gG":  # padding bytes
        return bool(np.array_equal(a, b, equal_nan=True))
    return bool(a.tobytes() == b.tobytes())


def _close(a: Any, b: Any) -> bool:
    """Equal to rounding, as structures of cotangents."""
    found = {path: leaf for path, leaf in _leaves(a)}
    other = {path: leaf for path, leaf in _leaves(b)}
    for path in {**found, **other}:
        left, right = found.get(path), other.get(path)
        precision = _coarsest([_letter(leaf) for leaf in (left, right) if leaf is not None])
        left, right = np.broadcast_arrays(_data_array(left), _data_array(right))
        if not np.allclose(left, right, rtol=64 * precision.eps, atol=64 * precision.eps):
            return False
    return True


def _forced(x̄: Any) -> Any:
    """A cotangent without thunks."""
    x̄ = unthunk(x̄)
    if isinstance(x̄, Tangent):
        return Tangent[x̄._primal]({k: _forced(part) for k, part in x̄.items()})
    if type(x̄) in (tuple, list):
        return type(x̄)([_forced(part) for part in x̄])
    return {k: _forced(part) for k, part in x̄.items()} if type(x̄) is dict else x̄


def _is_mutable(x: Any) -> bool:
    return adjoint_object(x) is not None


def _thunks_reach_the_core() -> bool:
    """Are thunks computed before a rule's pullback sees them?"""

    def double(x: Any) -> Any:
        return 2 * x, lambda ȳ: (2 * ȳ,)

    try:
        return bool(apply_rule(Rule(double, double), (1.0,), {})[1](Thunk(lambda: 1.0)) == (2.0,))
    except TypeError:
        return False


# -- texts -----------------------------------------------------------------------------------------


def _name(fn: Any) -> str:
    return str(getattr(fn, "__name__", None) or type(fn).__name__)


def _call(args: Any, kwargs: Any) -> str:
    named = [f"{k}={type(v).__name__}" for k, v in kwargs.items()]
    return f"({', '.join([type_names(args)] * bool(args) + named)})"


def _path_text(path: Path) -> str:
    """`['w'][2, 1]`, `.weights[0]`: where an entry stands."""
    text = ""
    for key in path:
        text += f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!r}]"
    return text


def _parameters_of(f: Any) -> set[str]:
    try:
        return set(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        return set()


def _take_options(kwargs: dict[str, Any], taken: set[str]) -> dict[str, Any]:
    """The options of the checker out of the keyword arguments."""
    return {
        name: kwargs.pop(name) if name in kwargs and name not in taken else default
        for name, default in _OPTIONS.items()
    }
