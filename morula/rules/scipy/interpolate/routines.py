"""Where the installed SciPy has the routines that the rules of interpolation are for.

They are private: from one version to the next they go to other modules, and get other names and
operands. Each has one name here. Where the operands or the answers have changed there are two, and
two short rules, which share what they mean. The name of a routine that this SciPy does not have
stands for a function that nobody calls; what SciPy calls in its place has no rule, which is refused
where a derivative would go through it.
Tests: tests/rules/scipy/test_interpolate.py
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from morula.core.extend import UnsupportedError


def routine(*places: str) -> Any:
    """What is at the first of these places in scipy.interpolate where there is anything."""
    found = [at(*place.split(".")) for place in places]
    return next((fn for fn in found if fn is not None), absent(places[0]))


def at(module: str, *names: str) -> Any:
    """What a module has there, or None."""
    try:
        found = import_module(f"scipy.interpolate.{module}")
    except ImportError:
        return None
    for name in names:
        if name not in vars(found):  # an inherited method is that of other classes, too
            return None
        found = getattr(found, name)
    return found


def absent(place: str) -> Callable[..., Any]:
    """What stands for a routine that there is not."""

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(
            f"a rule of Morula's needs scipy.interpolate.{place}, which this version of SciPy lacks"
        )

    return stand_in


# -- FITPACK: splines ------------------------------------------------------------------------------

splev = routine("_fitpack.splev", "_dfitpack.splev")
splder = routine("_fitpack.splder")  # (t, c, k, nu, x, e)
splder_at = routine("_dfitpack.splder")  # (t, c, k, x, nu, e)
spalde = routine("_fitpack.spalde", "_dfitpack.spalde")
splint = routine("_fitpack.splint")
splint_of_parts = routine("_dfitpack.splint")  # tells the integrals of all splines as well
sproot = routine("_fitpack.sproot", "_dfitpack.sproot")
insert = routine("_fitpack.insert", "_fitpack._insert")
bispev = routine("_fitpack.bispev", "_dfitpack.bispev")
bispeu = routine("_fitpack.bispeu", "_dfitpack.bispeu")
parder = routine("_fitpack.parder", "_dfitpack.parder")
pardeu = routine("_fitpack.pardeu", "_dfitpack.pardeu")
pardtc = routine("_fitpack.pardtc", "_dfitpack.pardtc")
dblint = routine("_fitpack.dblint", "_dfitpack.dblint")

# -- FITPACK: fits ---------------------------------------------------------------------------------

curfit = routine("_fitpack2._curfit")  # all that these three do
fpcurf0 = routine("_dfitpack.fpcurf0")
fpcurf1 = routine("_dfitpack.fpcurf1")
fpcurfm1 = routine("_dfitpack.fpcurfm1")
splrep = routine("_fitpack_impl.splrep")
splprep = routine("_fitpack_impl.splprep")
make_splrep = routine("_fitpack_repro._make_splrep_impl")
surfit_smth = routine("_fitpack2._surfit_smth")
surfit_smth_anew = routine("_dfitpack.surfit_smth")  # may ask for more room, to be called again
surfit_lsq = routine("_fitpack2._surfit_lsq")
surfit_lsq_anew = routine("_dfitpack.surfit_lsq")  # the same
bisplrep = routine("_fitpack_impl.bisplrep")
regrid_smth = routine("_fitpack2._regrid_smth", "_dfitpack.regrid_smth")
regrid_smth_spher = routine("_fitpack2._regrid_smth_spher", "_dfitpack.regrid_smth_spher")
spherfit_smth = routine("_fitpack2._spherfit_smth", "_dfitpack.spherfit_smth")

# -- B-splines -------------------------------------------------------------------------------------

find_interval = routine("_dierckx.find_interval")
evaluate_spline = routine("_dierckx.evaluate_spline")
evaluate_all_bspl = routine("_dierckx.evaluate_all_bspl")
evaluate_ndbspline = routine("_dierckx.evaluate_ndbspline")
coloc = routine("_dierckx._coloc")
coloc_nd = routine("_dierckx._coloc_nd")
data_matrix = routine("_dierckx.data_matrix")
norm_eq_lsq = routine("_dierckx._norm_eq_lsq")
lsq_solve_qr = routine("_bsplines._lsq_solve_qr")
not_a_knot = routine("_bsplines._not_a_knot")
make_ndbspl = routine("_ndbspline.make_ndbspl")

# -- piecewise polynomials -------------------------------------------------------------------------

evaluate = routine("_ppoly.evaluate")
evaluate_bernstein = routine("_ppoly.evaluate_bernstein")
evaluate_nd = routine("_ppoly.evaluate_nd")
integrate = routine("_ppoly.integrate")
fix_continuity = routine("_ppoly.fix_continuity")
real_roots = routine("_ppoly.real_roots")

# -- grids, scattered data, radial basis functions, rational functions -----------------------------

coordinates = routine("_interpnd._ndim_coords_from_arrays")
find_indices = routine("_rgi_cython.find_indices")
evaluate_linear_2d = routine("_rgi_cython.evaluate_linear_2d")
initialise = routine("_interpnd.NDInterpolatorBase.__init__")
call = routine("_interpnd.NDInterpolatorBase.__call__")
check_call_shape = routine("_interpnd.NDInterpolatorBase._check_call_shape")
scale_x = routine("_interpnd.NDInterpolatorBase._scale_x")
polynomial_matrix = routine("_rbfinterp_pythran._polynomial_matrix")
build_evaluation_coefficients = routine("_rbfinterp_pythran._build_evaluation_coefficients")
build_system = routine("_rbfinterp_pythran._build_system")
dsysv = routine("_rbfinterp_np.dsysv")  # of LAPACK
BarycentricRational = routine("_bary_rational._BarycentricRational")
poles = routine("_bary_rational._BarycentricRational.poles")
roots = routine("_bary_rational._BarycentricRational.roots")
