"""Which classes are arrays of the array API standard, and which functions are those of the standard.

A class counts that has `__array_namespace__` and whose operators are compiled, so that there is no
Python to follow; others are followed as the Python that they are, unless somebody declares them.
Arrays of libraries with rules of their own are left to those.
"""

from __future__ import annotations

from inspect import getattr_static
from typing import Any

import numpy as np

from morula.core.extend import non_differentiable
from morula.interop.meanings import is_or_holds, may_be_kept
from morula.rules.vectors import foreign

PARTS = ("linalg", "fft")

_types: list[type] = []
_known: dict[type, bool] = {}
_functions: dict[int, tuple[str, Any]] = {}  # the functions of all namespaces, by identity
_noted: list[Any] = []
namespaces: dict[type, Any] = {}  # of the classes that arrays were seen of

_NAMES = """
    all any arange argmax argmin argsort asarray astype broadcast_arrays broadcast_to can_cast clip
    concat count_nonzero cumulative_prod cumulative_sum diff empty empty_like expand_dims eye finfo
    flip from_dlpack full full_like iinfo isdtype isin linspace matmul matrix_transpose max mean
    meshgrid min moveaxis nonzero ones ones_like permute_dims prod repeat reshape result_type roll
    searchsorted sort squeeze stack std sum take take_along_axis tensordot tile tril triu
    unique_all unique_counts unique_inverse unique_values unstack var vecdot where zeros zeros_like
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift
    bitwise_or bitwise_right_shift bitwise_xor ceil conj copysign cos cosh divide equal exp expm1
    floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log
    log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor maximum minimum
    multiply negative nextafter not_equal positive pow real reciprocal remainder round sign signbit
    sin sinh sqrt square subtract tan tanh trunc
    linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eig linalg.eigh linalg.eigvals
    linalg.eigvalsh linalg.inv linalg.matmul linalg.matrix_norm linalg.matrix_power
    linalg.matrix_rank linalg.matrix_transpose linalg.outer linalg.pinv linalg.qr linalg.slogdet
    linalg.solve linalg.svd linalg.svdvals linalg.tensordot linalg.trace linalg.vecdot
    linalg.vector_norm fft.fft fft.ifft fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfftn fft.irfftn
    fft.hfft fft.ihfft fft.fftfreq fft.rfftfreq fft.fftshift fft.ifftshift
"""
NAMES = _NAMES.split()

_QUESTIONS = """
    all any argmax argmin argsort can_cast count_nonzero empty empty_like eye finfo iinfo
    isdtype isin nonzero ones ones_like result_type searchsorted zeros zeros_like bitwise_and
    bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor ceil equal
    floor floor_divide greater greater_equal isfinite isinf isnan less less_equal logical_and
    logical_not logical_or logical_xor not_equal round sign signbit trunc linalg.matrix_rank
    fft.fftfreq fft.rfftfreq
"""
QUESTIONS = set(_QUESTIONS.split())


def is_array(x: Any) -> bool:
    """Is it an array of a class of the standard?"""
    t = type(x)
    found = _known.get(t)
    if found is None:
        found = is_one_of_them(t)
        if found or may_be_kept(t):
            _known[t] = found
        if found:
            namespaces[t] = x.__array_namespace__()
            note_namespace(namespaces[t])
    return found


def is_class(x: Any) -> bool:
    """Is it a class of such arrays?"""
    return isinstance(x, type) and is_one_of_them(x)


def is_one_of_them(t: type) -> bool:
    """Is a class one of these, or derived from one? That is asked without its metaclass."""
    return any([base is known for base in t.__mro__ for known in _types])


def holds_array(x: Any) -> bool:
    """Is it one, or a list or a tuple that holds one?"""
    return is_or_holds(x, is_array)


def is_inexact(x: Any) -> bool:
    """Has an array a tangent space?"""
    return kind_of(x) in "fc"


def kind_of(x: Any) -> str:
    """The kind of the numbers in an array, by NumPy's letters."""
    return as_numpy_dtype(x.dtype).kind


def as_numpy_dtype(dtype: Any) -> Any:
    """The dtype of NumPy's of the same name."""
    return dtype if isinstance(dtype, np.dtype) else np.dtype(str(dtype).rsplit(".", 1)[-1])


def is_of_standard(t: type) -> bool:
    """Does a class answer to the standard, by code that is not Python?"""
    if getattr_static(t, "_is_protocol", False):  # which describes such classes
        return False
    if any(issubclass(t, library.types) for library in foreign):
        return False
    return not hasattr(getattr_static(t, "__mul__", None), "__code__")


def note_type(t: type) -> None:
    """Let arrays of a class go by value."""
    _types.append(t)
    _known.clear()


def note_namespace(xp: Any) -> None:
    """Note the functions of a namespace."""
    if is_namespace(xp):
        return
    _noted.append(xp)
    for name in NAMES:
        *part, last = name.split(".")
        fn = getattr(getattr(xp, part[0], None) if part else xp, last, None)
        if fn is not None:
            _functions.setdefault(id(fn), (name, fn))


def is_namespace(xp: Any) -> bool:
    """Is it a namespace whose functions are known?"""
    return any(xp is other for other in _noted)


def name_of(fn: Any) -> str | None:
    """The name of a function in the standard; None: it is none of a known namespace."""
    found = _functions.get(id(fn))
    return found[0] if found is not None else None


non_differentiable(is_array, holds_array, is_inexact, kind_of, as_numpy_dtype, name_of)
