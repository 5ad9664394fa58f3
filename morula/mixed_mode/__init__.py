"""Forward mode, and what combines the modes: Jacobians, Hessians, Taylor series."""

from morula.mixed_mode import attributes, calls, iteration, meta, structures
from morula.mixed_mode.pushforward import jvp, pushforward

__all__ = ["attributes", "calls", "iteration", "jvp", "meta", "pushforward", "structures"]
