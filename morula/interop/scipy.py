"""Derivatives as SciPy's optimisers and solvers call for them, and three of these for structures.

Each maker takes the function that the solver gets and gives what stands in its `jac=`, `hess=`,
`hessp=` or `fprime=`: called with the same arguments, new memory at every call, pickled if the
function is::

    minimize(f, x0, args, ...)              jac=jac(f), hess=hess(f), hessp=hessp(f)
    NonlinearConstraint(g, lb, ub, ...)     jac=jac(g), hess=constraint_hess(g)
    least_squares(f, x0, ...), root(...)    jac=jac(f)
    curve_fit(f, xdata, ydata, ...)         jac=curve_jac(f)
    solve_ivp(f, span, y0, ...)             jac=ode_jac(f)
    newton(f, x0, ...), root_scalar(...)    fprime=fprime(f), fprime2=fprime(fprime(f))

Tests: tests/interop/test_scipy.py
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from morula.core.errors import ArgumentError, qualified_name
from morula.core.extend import effects, non_differentiable
from morula.core.interface import grad, value_and_grad
from morula.mixed_mode import hessian, hvp, jacobian, jvp
from morula.rules.vectors import ravel

F = Callable[..., Any]


def jac(f: F, *, mode: str | None = None, sparsity: Any = None) -> F:
    """`(x, *args)` -> the gradient of `f` by x; its Jacobian, (m, n), if `f` gives a vector.

    An array of one entry counts as a number, as it does for SciPy's solvers. `mode` and `sparsity`
    are those of `jacobian`; with `sparsity="auto"` the Jacobian is a `scipy.sparse` array, whose
    pattern is found anew at every call.

    >>> from scipy.optimize import rosen
    >>> jac(rosen)(np.array([1.0, 2.0]))
    array([-400.,  200.])
    """
    return Jacobian(f, mode, sparsity)


class Jacobian:
    """What `jac` gives; it remembers whether the function gives a number."""

    def __init__(self, f: F, mode: str | None, sparsity: Any) -> None:
        self.f = f
        self.mode = mode
        self.sparsity = sparsity
        self.gives_number: bool | None = None

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The derivative at x."""
        if self.gives_number is None:
            y = self.f(as_point(x), *args, **kwargs)
            self.gives_number = np.ndim(y) == 0 or (self.sparsity is None and np.size(y) == 1)
        if self.gives_number:
            return fresh(grad(self.f)(as_point(x), *args, **kwargs))
        found = jacobian(
            named(self.f, lambda x: as_vector(self.f(x, *args, **kwargs))),
            as_point(x),
            mode=self.mode,
            sparsity=self.sparsity,
        )
        return fresh(found[0])


def hess(f: F, *, sparsity: Any = None) -> F:
    """`(x, *args)` -> the Hessian of a real function, of shape (n, n).

    `sparsity` is that of `hessian`: with "auto" or a pattern the result is a `scipy.sparse` array, as
    `method="trust-constr"` takes it.

    >>> hess(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    return partial(hessian_at, f, sparsity)


def hessian_at(f: F, sparsity: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """What `hess` gives."""
    if kwargs:
        of_x = named(f, lambda x: f(x, *args, **kwargs))
        return fresh(hessian(of_x, as_point(x), sparsity=sparsity))
    return fresh(hessian(f, as_point(x), *args, sparsity=sparsity))


def hessp(f: F) -> F:
    """`(x, p, *args)` -> the Hessian of a real function times p, never formed."""
    return partial(hessian_product, f)


def hessian_product(f: F, x: Any, p: Any, *args: Any, **kwargs: Any) -> Any:
    """What `hessp` gives."""
    if kwargs:
        of_x = named(f, lambda x: f(x, *args, **kwargs))
        return fresh(hvp(of_x, as_point(x), as_point(p)))
    return fresh(hvp(f, as_point(x), as_point(p), *args))


def constraint_hess(f: F, *, sparsity: Any = None) -> F:
    """`(x, v)` -> the Hessian of `v @ f(x)`, as `NonlinearConstraint` wants it; as `hess`."""
    return partial(hessian_of_combination, f, sparsity)


def require_aligned(weights: tuple[int, ...], values: tuple[int, ...]) -> None:
    """An error if there is not one weight for each value."""
    if weights != values:
        raise ValueError(
            f"shapes {weights} and {values} not aligned: one weight for each constraint"
        )


non_differentiable(require_aligned)
effects(require_aligned)


def hessian_of_combination(f: F, sparsity: Any, x: Any, v: Any) -> Any:
    """What `constraint_hess` gives."""
    weights = np.array(v, copy=True)

    def combination(x: Any) -> Any:
        values = np.ravel(f(x))
        require_aligned(np.shape(weights), np.shape(values))
        return np.dot(weights, values)

    combined = named(f, combination)
    return fresh(hessian(combined, as_point(x), sparsity=sparsity))


def curve_jac(f: F, *, mode: str | None = None) -> F:
    """`(xdata, *params)` -> the Jacobian of a model by its parameters, (M, n), for `curve_fit`."""
    return partial(jacobian_of_curve, f, mode)


def jacobian_of_curve(f: F, mode: str | None, xdata: Any, *params: Any) -> Any:
    """What `curve_jac` gives."""
    of_params = named(f, lambda p: np.reshape(f(xdata, *p), -1))
    return fresh(jacobian(of_params, as_point(params), mode=mode)[0])


def ode_jac(f: F, *, mode: str | None = None, sparsity: Any = None) -> F:
    """`(t, y, *args)` -> the Jacobian of a right-hand side by y, for stiff solvers."""
    return partial(jacobian_of_ode, f, mode, sparsity)


def jacobian_of_ode(f: F, mode: str | None, sparsity: Any, t: Any, y: Any, *args: Any) -> Any:
    """What `ode_jac` gives."""
    of_y = named(f, lambda y: np.atleast_1d(as_vector(f(t, y, *args))))
    return fresh(jacobian(of_y, as_point(y), mode=mode, sparsity=sparsity)[0])


def fprime(f: F) -> F:
    """`(x, *args)` -> the derivative of a function of one number; elementwise, of an array.

    At complex numbers it is that of a holomorphic function; any other is refused. It may be
    differentiated in its turn: `fprime(fprime(f))`.
    """
    return partial(slope, f)


def slope(f: F, x: Any, *args: Any) -> Any:
    """What `fprime` gives."""
    if np.iscomplexobj(x):
        return holomorphic_slope(f, x, args)
    return grad(named(f, lambda x: np.sum(f(x, *args))))(x)


def holomorphic_slope(f: F, x: Any, args: tuple[Any, ...]) -> Any:
    """The same at complex numbers, where the derivatives along both axes have to agree."""
    of_x = named(f, lambda x: f(x, *args))
    along = jvp(of_x, (x,), (np.ones_like(x),))[1]
    across = jvp(of_x, (x,), (1j * np.ones_like(x),))[1]
    if not np.allclose(across, 1j * along, equal_nan=True):
        raise ArgumentError(
            f"{qualified_name(f)} is not holomorphic at {x}: its derivative depends on the direction; "
            "morula.wirtinger gives both of its derivatives, jvp that along a direction"
        )
    return along


# -- solvers for structures ------------------------------------------------------------------------

NO_DERIVATIVES = {"nelder-mead", "powell", "cobyla", "cobyqa"}
WITH_PRODUCTS = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}
WITH_HESSIAN = {"dogleg", "trust-exact"}
WITH_JACOBIAN = {"hybr", "lm"}  # of the methods of `root`


def minimize(
    f: F, params: Any, args: tuple[Any, ...] = (), method: Any = None, **options: Any
) -> Any:
    """`scipy.optimize.minimize` for a function of any structure, with the derivatives its method uses.

    Args:
        f: real function of `(params, *args)`.
        params: where to begin: what `ravel` takes.
        options: those of SciPy's function. Bounds and constraints are for the vector.
    Returns:
        SciPy's result; `params` is the structure at its `x`.

    >>> found = minimize(lambda p: (p["a"] - 1.0) ** 2 + p["b"][0] ** 2, {"a": 0.0, "b": [3.0]})
    >>> round(found.params["a"], 6)
    1.0
    """
    from scipy import optimize

    x0, fun, unravel = flat(f, params)
    name = method.lower() if isinstance(method, str) else ""
    given: dict[str, Any] = {}
    if name not in NO_DERIVATIVES and "jac" not in options:
        fun, given = value_and_grad(fun), {"jac": True}
    if name in WITH_PRODUCTS and "hess" not in options:
        given["hessp"] = hessp(flat(f, params)[1])
    if name in WITH_HESSIAN:
        given["hess"] = hess(flat(f, params)[1])
    found = optimize.minimize(fun, x0, args=args, method=method, **{**given, **options})
    return with_params(found, unravel)


def least_squares(f: F, params: Any, args: tuple[Any, ...] = (), **options: Any) -> Any:
    """`scipy.optimize.least_squares` for residuals, in any structure, of any structure; as `minimize`.

    With `sparsity="auto"` the Jacobian is sparse.
    """
    from scipy import optimize

    x0, fun, unravel = flat(f, params)
    residuals = in_vector(fun)
    options.setdefault("jac", jac(residuals, sparsity=options.pop("sparsity", None)))
    return with_params(optimize.least_squares(residuals, x0, args=args, **options), unravel)


def root(f: F, params: Any, args: tuple[Any, ...] = (), **options: Any) -> Any:
    """`scipy.optimize.root` for equations in any structure, which `f` gives in any; as `minimize`."""
    from scipy import optimize

    x0, fun, unravel = flat(f, params)
    equations = in_vector(fun)
    if options.get("method", "hybr").lower() in WITH_JACOBIAN:
        options.setdefault("jac", jac(equations))
    return with_params(optimize.root(equations, x0, args=args, **options), unravel)


def flat(f: F, params: Any) -> tuple[Any, F, Any]:
    """The vector of a structure, `f` as a function of it, and what makes the structure of it again."""
    x0, unravel = ravel(params)
    if not x0.size:
        raise ArgumentError(f"there are no numbers in the parameters, {params!r}: nothing can vary")
    if x0.dtype.kind == "c":
        raise ArgumentError(
            "there are complex numbers among the parameters, and SciPy's solvers vary real ones: "
            "take their real and imaginary parts as parameters"
        )

    def of_vector(v: Any, *args: Any) -> Any:
        return f(unravel(v), *args)

    return x0, named(f, of_vector), unravel


def in_vector(f: F) -> F:
    """`f` with the numbers of its value in one vector."""

    def vector_of(v: Any, *args: Any) -> Any:
        y = f(v, *args)
        return y if isinstance(y, np.ndarray) and y.ndim == 1 else ravel(y)[0]

    return named(f, vector_of)


def with_params(found: Any, unravel: Any) -> Any:
    """SciPy's result, with the structure."""
    found.params = unravel(found.x)
    return found


# -- helpers ---------------------------------------------------------------------------------------


def as_point(x: Any) -> Any:
    """A copy of a point: solvers go on writing to theirs; integers are points of the real line."""
    x = np.array(x)
    if x.dtype.kind not in "iufc":
        raise ArgumentError(
            f"a point is a number or an array of numbers, got one of {x.dtype}: for parameters in a "
            "structure take minimize, least_squares or root of morula.interop.scipy, or morula.ravel"
        )
    return x.astype(float) if x.dtype.kind in "iu" else x


def named(f: F, g: F) -> F:
    """`g`, which errors call by the name of the user's `f`."""
    return wraps(f, updated=())(g)


def as_vector(y: Any) -> Any:
    """What a solver takes for a vector: lists, too."""
    return y if isinstance(y, np.ndarray) else np.asarray(y)


def fresh(x̄: Any) -> Any:
    """A derivative in memory of its own, which the solver may keep and write to."""
    return np.array(x̄) if isinstance(x̄, (np.ndarray, np.generic, float, complex)) else x̄


__all__ = [
    "constraint_hess", "curve_jac", "fprime", "hess", "hessp", "jac", "least_squares", "minimize",
    "ode_jac", "root",
]  # fmt: skip
