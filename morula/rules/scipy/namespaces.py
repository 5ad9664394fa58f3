"""SciPy asks its arguments for the library that they belong to; of NumPy's arrays the types tell.

`xp = array_namespace(x)` and what asks about `xp` are constants in compiled programs, and
`xp_promote(x, xp=xp)` is one `np.asarray` per array. On the general path, SciPy's own code runs.
Tests: tests/rules/scipy/test_namespaces.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy._lib import _array_api as api

from morula.core.extend import Call, Const, known, primitives, rewrites
from morula.rules.arrays.bodies import instead_of
from morula.rules.arrays.constants import PLAIN, decided_by_types, one_of_type
from morula.rules.versions import present

QUESTIONS = """
    array_namespace is_numpy is_torch is_jax is_cupy is_dask is_marray is_array_api_strict
    is_numpy_array is_torch_array is_jax_array is_cupy_array is_dask_array is_lazy_array
    is_array_api_obj xp_result_type xp_default_dtype xp_device xp_result_device
"""
decided_by_types(*present(api, QUESTIONS))


# What SciPy keeps to itself comes and goes with its versions.
NUMPY = getattr(api, "np_compat", np)
PROMOTE, AS_ARRAY = getattr(api, "xp_promote", None), getattr(api, "_asarray", None)


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Any:
    """`xp.asarray` of NumPy's arrays, which are on one device."""
    if device is not None:
        np.asarray(0, device=device)  # raises, if there is none of this name
    return np.asarray(obj, dtype, copy=copy)


if NUMPY is not np:
    instead_of(NUMPY.asarray)(asarray)


def solve(x1: Any, x2: Any, /, xp: Any = None) -> Any:
    """Its own is NumPy's internal one, after a question of the standard."""
    return np.linalg.solve(x1, x2)


if hasattr(NUMPY, "linalg") and NUMPY.linalg.solve is not np.linalg.solve:
    instead_of(NUMPY.linalg.solve)(solve)

OF_PROMOTE = {"force_floating", "broadcast", "xp"}
OF_ASARRAY = {"dtype", "xp", "subok", "copy"}


@rewrites
def without_namespaces(s: Any) -> bool:
    """Arrays are made by NumPy's own functions; was there anything?"""
    changed = False
    for block in s.ir.blocks:
        for call in list(block.calls):
            if call.primitive is None:
                continue
            if call.primitive is PROMOTE:
                changed |= promote(s, block, call)
            elif call.primitive is AS_ARRAY:
                changed |= convert(s, call)
    return changed


def settings(s: Any, call: Call, allowed: set[str]) -> dict[str, Any] | None:
    """The keywords of a call on NumPy's arrays, if they are constants."""
    n = len(call.args) - len(call.keywords)
    values = [s.value(a) for a in call.args]
    named = dict(zip(call.keywords, values[n:], strict=True))
    if not named.keys() <= allowed or not all(type(v) is Const for v in named.values()):
        return None
    if not all((k := known(v)) is not None and k.type in PLAIN for v in values[:n]):
        return None
    found = {k: v.value for k, v in named.items()}
    return found if found.get("xp") in (None, np, NUMPY) else None


def promote(s: Any, block: Any, call: Call) -> bool:
    """`xp_promote(x, …)`, which gives arrays of one type, one by one."""
    given = settings(s, call, OF_PROMOTE)
    if not given or given.get("broadcast"):
        return False
    xs = call.args[: len(call.args) - len(call.keywords)]
    samples = [one_of_type(s.value(x)) for x in xs]
    answer = PROMOTE(*samples, **given)
    dtype = (answer if len(xs) == 1 else answer[0]).dtype
    if len(xs) == 1:
        call.fn, call.args, call.keywords = Const(np.asarray), (*xs, Const(dtype)), ()
        return True
    calls = [Call(s.ir.var(), Const(np.asarray), (x, Const(dtype)), (), call.position) for x in xs]
    at = block.calls.index(call)
    block.calls[at:at] = calls
    call.fn, call.args = Const(primitives.build_tuple), tuple([c.out for c in calls])
    call.keywords = ()
    return True


def convert(s: Any, call: Call) -> bool:
    """`_asarray(x, …)` of one array."""
    given = settings(s, call, OF_ASARRAY)
    if given is None or given.get("copy") or len(call.args) - len(call.keywords) != 1:
        return False
    call.fn = Const(np.asarray)
    call.args, call.keywords = (call.args[0], Const(given.get("dtype"))), ()
    return True
