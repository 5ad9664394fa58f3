"""What users call: gradient, grad, pullback, J and their kin."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from morula.core import errors, watch
from morula.core.callables import Calls, function_of, is_plain, positions_of, with_asked_for
from morula.core.compiled import Fallback, Family, by_all_of, family_by, family_of, most_kept
from morula.core.context import Reached, as_before, enter, is_running, leave
from morula.core.cotangents import NONE, ZERO, project_parts, project_to
from morula.core.general import Back, call
from morula.core.gradients import for_pickle
from morula.core.memory import Written, begin_log, end_log, what_to_put_back
from morula.core.nested import MAKERS, Maker
from morula.core.orders import Along, OfFunction, OfGradient, with_direction
from morula.core.places import ENTRIES, tell_place
from morula.core.pulled import pullbacks_of
from morula.core.results import lines_of_result
from morula.core.settings import settings
from morula.core.traits import gradient_for, has_tangent, materialise, on_entry, remembered, unit


def J(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The value of `f(*args, **kwargs)` and its pullback, which gives `(f̄, *cotangents)`.

    `f̄` is the cotangent of the callable itself: a `Tangent` of the variables that a closure
    captured, of the attributes of an object; `NoTangent()` where there is nothing of the kind.
    Cotangents that are structurally zero may be `ZeroTangent()`.

    >>> def closure(a):
    ...     return lambda x: a * x
    >>> y, back = J(closure(3.0), 2.0)
    >>> back(1.0)
    (Tangent[function](a=2.0), 3.0)
    """
    return remembering(f, args, *differentiate_and_log(f, args, kwargs))


def remembering(
    f: Any, args: tuple[Any, ...], y: Any, back: Back, written: Written
) -> tuple[Any, Back]:
    """The value and its pullback, which runs while all is as it was when `f` had been called."""
    known: dict[int, Any] = {}
    memory = [
        as_it_was for x in (y, f, *args, *written.values()) for as_it_was in remembered(x, known)
    ]
    return y, functools.partial(pull_as_it_was, back, memory) if memory else back


def differentiate(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> tuple[Any, Back]:
    """`J`, for who calls the pullback before anything else happens."""
    y, back, _ = differentiate_and_log(f, args, kwargs)
    return y, back


def differentiate_and_log(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Back, Written]:
    """The same, and the memory that was written to."""
    settings.begin()
    outer = begin_log()
    log: Written = {}
    try:
        known: dict[int, Any] = {}
        inputs = [on_entry(x, known) for x in (f, *args)]
        y, back = as_before(call, f, *args, **kwargs)
    finally:
        log.update(end_log(outer))
        settings.end()
    return y, functools.partial(pull, back, project_to(y), inputs, log), log


def straight_differentiate(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> tuple[Any, Back]:
    """`differentiate`, as differentiated code sees it."""
    outer = begin_log()
    known: dict[int, Any] = {}
    inputs = [on_entry(x, known) for x in (f, *args)]
    y, back = call(f, *args, **kwargs)
    log = end_log(outer)
    return y, functools.partial(pull, back, project_to(y), inputs, log)


def pull_as_it_was(back: Back, memory: list[Callable[[], Callable[[], None]]], ȳ: Any) -> Any:
    """A pullback, while what its caller may have changed since is as it was."""
    undo = [as_it_was() for as_it_was in memory]
    try:
        return back(ȳ)
    finally:
        for restore in reversed(undo):
            restore()


def pull(
    back: Back, project: Callable[[Any], Any], inputs: list[Any], written: Written, ȳ: Any
) -> Any:
    """One reverse pass: what a user gets for each input, for a cotangent that mirrors the value."""
    if watch.current is None:
        return one_pass(back, project, inputs, written, ȳ)
    return watch.current.pull(functools.partial(one_pass, back, project, inputs, written, ȳ))


def one_pass(
    back: Back, project: Callable[[Any], Any], inputs: list[Any], written: Written, ȳ: Any
) -> Any:
    """A reverse pass that nobody looks at."""
    settings.begin()
    outer = enter(copy_of(written))
    try:
        return gradients_of(back, project, inputs, ȳ)
    except Exception as error:
        tell_place(error)
        raise
    finally:
        leave(outer)
        settings.end()


ENTRIES.append(one_pass.__code__)


def straight_pull(
    back: Back, project: Callable[[Any], Any], inputs: list[Any], written: Written, ȳ: Any
) -> Any:
    """The same, as differentiated code sees it."""
    outer = enter(copy_of(written))
    found = gradients_of(back, project, inputs, ȳ)
    for put_back in what_to_put_back():
        put_back()
    leave(outer)
    return found


def copy_of(written: Written) -> Written:
    """The memory that was written to; a reverse pass may add to it."""
    return dict(written)


def gradients_of(
    back: Back, project: Callable[[Any], Any], inputs: list[Any], ȳ: Any
) -> tuple[Any, ...]:
    """The cotangent of the callable, which may be none, and the gradients for its arguments."""
    cotangents = back(ZERO if ȳ is None else project(ȳ))
    of = Reached()
    f, *args = inputs
    gradients = [
        gradient_for(x, x̄, of) for x, x̄ in zip(args, cotangents[1 : len(inputs)], strict=True)
    ]
    f̄ = materialise(f, cotangents[0], of.of_callable()) if has_tangent(type(f)) else NONE
    return (NONE if f̄ is None else f̄, *gradients)


def in_a_pass(project: Callable[[Any], Any], x: Any, x̄: Any) -> Any:
    """A cotangent of a structure in its space, as parts of the pass that runs or as what it mirrors."""
    if is_running():
        return project(x̄)
    outer = enter({})
    try:
        return gradient_for(x, project(x̄), Reached())
    finally:
        leave(outer)


project_parts.append(in_a_pass)


def pullback(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """The value of `f(*args, **kwargs)` and `back`: ȳ -> a tuple, one cotangent per argument.

    `ȳ` mirrors the value; None is a zero. `back` may be called any number of times. `kwargs` go to
    `f` as they are and get no cotangent.

    >>> y, back = pullback(lambda x, y: (x * y, x), 2.0, 3.0)
    >>> back((1.0, 10.0))
    (13.0, 2.0)
    """
    compiled = None
    if not kwargs and watch.current is None:
        compiled = pullbacks_of(f, len(args), differentiate_and_log)
    found = differentiate_and_log(f, args, kwargs) if compiled is None else compiled(*args)
    y, back = remembering(f, args, *found)
    return y, functools.partial(_without_callee, back)


def general_pullback(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """`pullback` by the general path."""
    y, back = J(f, *args, **kwargs)
    return y, functools.partial(_without_callee, back)


def _without_callee(back: Callable[[Any], tuple[Any, ...]], ȳ: Any) -> tuple[Any, ...]:
    return back(ȳ)[1:]


def withgradient(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """The value of `f(*args, **kwargs)` and the tuple of its gradients.

    >>> withgradient(lambda x: x**2, 3.0)
    (9.0, (6.0,))
    """
    both: tuple[Any, Any] = _by_all(f, args, kwargs, True)
    return both


def gradient(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """The gradients of `f` by its positional arguments, always as a tuple.

    `f` must give one real number. `kwargs` go to `f` and are not differentiated. For an optimiser
    of SciPy's use `grad` or `value_and_grad`, which give the bare gradient.

    >>> gradient(lambda x, y: x * y, 2.0, 3.0)
    (3.0, 2.0)
    """
    gradients: tuple[Any, ...] = _by_all(f, args, kwargs, False)
    return gradients


def _by_all(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], with_value: bool) -> Any:
    """The gradient by all arguments that are given by position."""
    if type(f) is FunctionType and f.__code__.co_argcount == len(args) and not kwargs:
        code, gradient = by_all_of.get((f, with_value), (None, None))
        if gradient is not None and code is f.__code__:
            return gradient(*args)
        family = family_for(f, tuple(range(len(args))), with_value, False, False)
        if family is not None:
            gradient = family.function(f)
            if f.__closure__ is None and f.__kwdefaults__ is None:
                if len(by_all_of) >= most_kept:
                    by_all_of.clear()
                by_all_of[f, with_value] = f.__code__, gradient
            return gradient(*args)

    def general(*args: Any, **kwargs: Any) -> Any:
        y, back = differentiate(f, *args, **kwargs)
        gradients = back(_one(y, f))[1:]
        return (y, gradients) if with_value else gradients

    def family_by(
        f: FunctionType, wanted: tuple[int, ...], names: tuple[str, ...]
    ) -> Family | None:
        return family_for(f, wanted, with_value, False, False, names)

    return Calls(f, None, family_by, general)(args, kwargs)


def _one(y: Any, f: Any) -> Any:
    """The cotangent of an output that must be one real number."""
    one = unit(y)
    if one is None:
        raise errors.not_scalar(y, errors.qualified_name(f), lines_of_result(f))
    return one


def grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of `f` by the argument `argnums`.

    A tuple of gradients if `argnums` is a sequence; negative numbers count from the end of those
    given by position. An argument that `argnums` names may be given by keyword; the others that are
    go to `f` as they are. With `has_aux`, `f` returns `(output, aux)` and the function
    `(gradient, aux)`.

    >>> grad(lambda x, y: x * y, argnums=-1)(2.0, 3.0)
    2.0
    """
    argnums = as_argnums(argnums)
    made = _gradient_function(f, argnums, has_aux, with_value=False)
    return for_pickle(made, grad, f, {"argnums": argnums, "has_aux": has_aux})


def value_and_grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the value of `f` and its gradient, as `grad` does.

    >>> value_and_grad(lambda x: x**2)(3.0)
    (9.0, 6.0)
    """
    argnums = as_argnums(argnums)
    made = _gradient_function(f, argnums, has_aux, with_value=True)
    return for_pickle(made, value_and_grad, f, {"argnums": argnums, "has_aux": has_aux})


def _gradient_function(f: Any, argnums: Any, has_aux: bool, with_value: bool) -> Callable[..., Any]:
    """What `grad` and `value_and_grad` give."""
    single = isinstance(argnums, int)
    numbers = (argnums,) if single else tuple(argnums)
    general = (general_value_and_grad if with_value else general_grad)(f, argnums, has_aux)
    if is_plain(f) and all(i >= 0 for i in numbers):
        family = family_for(f, numbers, with_value, single, has_aux)
        return general if family is None else family.function(f)
    if function_of(f) is None:
        return general

    def family_by(
        f: FunctionType, wanted: tuple[int, ...], names: tuple[str, ...]
    ) -> Family | None:
        return family_for(f, wanted, with_value, single, has_aux, names)

    calls = Calls(f, argnums, family_by, general)

    @_wraps(f, general.__name__)
    def gradient_function(*args: Any, **kwargs: Any) -> Any:
        return calls(args, kwargs)

    gradient_function.__dict__["__morula__"] = calls
    return gradient_function


def gradient_product(
    f: Any, inner: Callable[[Any, Any], Any], general: Fallback
) -> Callable[..., Any] | None:
    """`(x, v, *args)` -> the gradient by x of `inner(grad(f)(x, *args), v)`; None for some callables.

    `general(f, args, kwargs)` is called where there is no program.
    """
    if not is_plain(f) or not f.__code__.co_argcount:
        return None
    family = family_for(f, (0,), False, True, False)
    if family is None:
        return None
    source = Along(OfGradient.of_family(family), inner)
    how = ((0,), False, True, False, ())
    products = family_by(with_direction(family.code), f, how, general, source)
    return None if products is None else products.function(f)


def pulled_product(
    f: Any, inner: Callable[[Any, Any], Any], general: Fallback, args: tuple[Any, ...], ȳ: Any
) -> Callable[..., Any] | None:
    """`(x, ȳ, *args)` -> the gradients of `inner(f(x, *args), ȳ)` by x and all of args.

    None where there is no program for arguments like these, or one with effects.
    """
    if not is_plain(f) or f.__code__.co_argcount != len(args) or "__morula__" in f.__dict__:
        return None
    how = (tuple(i + (i > 0) for i in range(len(args))), False, False, False, ())
    products = family_by(with_direction(f.__code__), f, how, general, Along(OfFunction(), inner))
    if products is None:
        return None
    g: Any = products.function(f)
    program = products.program(g, (args[0], ȳ, *args[1:]), None)
    return g if program.code is not None and program.leaves_nothing else None


def family_for(
    f: FunctionType,
    wanted: tuple[int, ...],
    with_value: bool,
    single: bool,
    has_aux: bool,
    names: tuple[str, ...] = (),
) -> Family | None:
    """The specialised programs for the gradient of `f`, if it can have any."""
    transform = general_value_and_grad if with_value else general_grad

    def general(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return transform(f, wanted[0] if single else wanted, has_aux)(*args, **kwargs)

    return family_of(f, wanted, with_value, single, has_aux, names, general)


def family_again(f: FunctionType, orders: list[Any]) -> Family:
    """The family of a gradient function of `f` that was pickled by value."""
    g: Any = f
    for how in orders:
        family = family_for(g, *how)
        assert family is not None
        g = family.function(g)
    found: Family = g.__dict__["__morula__"]
    return found


def general_grad(f: Any, argnums: Any, has_aux: bool) -> Callable[..., Any]:
    """`grad` by the general path."""
    both = general_value_and_grad(f, argnums, has_aux)

    @_wraps(f, "grad")
    def grad_f(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return grad_f


def general_value_and_grad(f: Any, argnums: Any, has_aux: bool) -> Callable[..., Any]:
    """`value_and_grad` by the general path."""

    @_wraps(f, "value_and_grad")
    def value_and_grad_f(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args, kwargs = with_asked_for(f, argnums, args, kwargs)
        positions = positions_of(argnums, len(args), f)
        y, back = differentiate(f, *args, **kwargs)
        ask_only(back, positions)
        out = y
        if has_aux:
            out = _output_of(y, f)
        one = _one(out, f)
        cotangents = back((one, ZERO) if has_aux else one)
        if isinstance(argnums, int):
            return y, cotangents[1 + positions[0]]
        return y, tuple([cotangents[1 + i] for i in positions])

    return value_and_grad_f


def ask_only(back: Any, positions: Sequence[int]) -> None:
    """Let a pullback of `differentiate` give nothing for the other arguments, known or not."""
    inputs = back.args[2]
    for i in range(1, len(inputs)):
        if i - 1 not in positions:
            inputs[i] = None


def _output_of(y: Any, f: Any) -> Any:
    if type(y) is not tuple or len(y) != 2:
        raise errors.OutputError(
            f"with has_aux=True {errors.qualified_name(f)} must return a pair (output, aux), "
            f"it returned a {type(y).__name__}"
        )
    return y[0]


def as_argnums(argnums: Any) -> int | tuple[int, ...]:
    """Argnums as an int or a tuple of ints; integers of any type will do."""
    try:
        if not isinstance(argnums, Sequence) or isinstance(argnums, str | bytes):
            return as_position(argnums)
        return tuple([as_position(i) for i in argnums])
    except TypeError:
        problem = f"argnums must be an int or a sequence of ints, got {argnums!r}"
        raise errors.ArgumentError(problem) from None


def as_position(i: Any) -> int:
    """An integer that is no truth value."""
    if isinstance(i, bool):
        raise TypeError
    return operator.index(i)


def _wraps(f: Any, name: str) -> Callable[[Any], Any]:
    """`functools.wraps`, for callables without a name too."""

    def wrap(g: Any) -> Any:
        g = functools.wraps(f, updated=())(g)
        if not hasattr(f, "__name__"):
            g.__name__ = name
        return g

    return wrap


MAKERS.update(
    {
        id(gradient): Maker(of_function=False, with_value=False),
        id(withgradient): Maker(of_function=False, with_value=True),
        id(grad): Maker(of_function=True, with_value=False),
        id(value_and_grad): Maker(of_function=True, with_value=True),
    }
)

__all__ = ["J", "grad", "gradient", "pullback", "value_and_grad", "withgradient"]
