"""Arrays of xarray in differentiated code, see labelled.py; data sets, by their variables.

The cotangent of a data set is a `Tangent` of its variables by name; the gradient is a data set.
Tests: tests/interop/test_labelled.py
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray

from morula.core.errors import ArgumentError
from morula.core.extend import (
    NONE,
    ZERO,
    CotangentError,
    Tangent,
    general,
    gradient_for,
    materialise,
    non_differentiable,
    project_to,
    projector,
    rrule,
    space_problem,
    unit,
    unthunk,
)
from morula.interop.labelled import follow
from morula.interop.meanings import Args, claim, go_by_value
from morula.rules.calls import part
from morula.rules.numbers import Anything
from morula.rules.vectors import Foreign, foreign

DATASET = xarray.Dataset


def like(values: Any, x: Any) -> Any:
    """Values with the dimensions and coordinates of an array."""
    return x.copy(data=values)


def same_labels(x: Any, other: Any) -> bool:
    """Have two arrays the same dimensions, and where both have coordinates along one, the same?"""
    both = {*x.indexes} & {*other.indexes}
    return x.dims == other.dims and all(x.indexes[d].equals(other.indexes[d]) for d in both)


# -- data sets -------------------------------------------------------------------------------------


def variable(dataset: Any, name: str) -> Any:
    """A variable of a data set."""
    return dataset[name]


@rrule(variable)
def _(dataset: Anything, name: str):
    def variable_pullback(ȳ):
        return Tangent[DATASET]({name: ȳ}), NONE

    return variable(dataset, name), variable_pullback


def dataset_of(names: tuple[str, ...], arrays: tuple[Any, ...]) -> Any:
    """The data set of these variables."""
    return DATASET(dict(zip(names, arrays, strict=True)))


@rrule(dataset_of)
def _(names: tuple, arrays: tuple):
    def dataset_of_pullback(ȳ):
        return NONE, tuple([part(ȳ, name) for name in names])

    return dataset_of(names, arrays), dataset_of_pullback


def read(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`dataset["name"]`, `dataset.name`."""
    return variable(*args)


READ = claim(read)


def claims(fn: Any, given: Args) -> Any:
    """What reads a variable of a data set; None: nothing of the kind."""
    if fn not in (operator.getitem, getattr) or len(given) != 2:
        return None
    dataset, name = given
    if not isinstance(dataset, DATASET) or type(name) is not str or name not in dataset.data_vars:
        return None
    return READ if fn is operator.getitem or not hasattr(DATASET, name) else None


def project(x: Any) -> Callable[[Any], Any]:
    """What brings a cotangent to the variables of a data set."""

    def project_dataset(x̄: Any) -> Any:
        if not isinstance(x̄, (DATASET, Tangent, dict)) or not {*x̄.keys()} <= {*x.data_vars}:
            raise CotangentError(
                f"the cotangent of a Dataset is a {type(x̄).__name__}, expected one of its variables "
                f"{', '.join(map(str, x.data_vars))}"
            )
        of_set = isinstance(x̄, DATASET)
        return Tangent[DATASET](
            {
                name: project_to(x[name])(variable(x̄, name) if of_set else x̄[name])
                for name in names_of(x̄)
            }
        )

    return project_dataset


def names_of(x: Any) -> tuple[Any, ...]:
    """The names of variables."""
    return tuple(x.keys())


def gradient_of(x: Any, x̄: Any, of: Callable[[Any], Any]) -> Any:
    """What the user gets: a data set of those variables that are numbers."""
    x̄ = unthunk(x̄)
    bars = x̄ if isinstance(x̄, Tangent) else {}
    names = numeric(x)
    return dataset_of(
        names,
        tuple([gradient_for(x[n], bars[n] if n in names_of(bars) else ZERO, of) for n in names]),
    )


def numeric(x: Any) -> tuple[str, ...]:
    """The names of the variables of a data set that have gradients."""
    return tuple([name for name, v in x.data_vars.items() if v.dtype.kind in "fciu"])


def not_in_vectors(x: Any) -> bool:
    """`ravel` takes none."""
    raise ArgumentError("ravel cannot take a Dataset: give it a dict of its arrays")


follow("xarray", (xarray.DataArray,), like, same_labels)
projector.register(DATASET, project)
unit.register(DATASET, lambda y: None)
materialise.register(DATASET, gradient_of)
space_problem.register(DATASET, lambda x, x̄: None)
go_by_value(DATASET)
foreign.append(Foreign((DATASET,), not_in_vectors, np.asarray, lambda *given: None, lambda x: None))
general.CLAIMS.insert(0, claims)
non_differentiable(names_of, numeric)
