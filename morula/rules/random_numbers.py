"""Rules of random numbers: draws, and states, that depend on no number with a derivative.

Those of NumPy's draws that have parameters: rules/arrays/draws.py.
Tests: tests/rules/test_random_numbers.py
"""

import random

import numpy as np

from morula.rules.arrays.outs import constant_but_for_out

CONSTANT = (
    "random", "integers", "bytes", "standard_normal", "standard_exponential", "standard_cauchy", "rand",
    "randn", "randint", "random_sample", "tomaxint", "randrange", "getrandbits", "randbytes", "seed",
    "getstate", "setstate", "get_state", "set_state", "spawn", "default_rng",
)  # fmt: skip

for _source in (np.random, np.random.Generator, np.random.RandomState, random, random.Random):
    for _name in CONSTANT:
        if hasattr(_source, _name):
            constant_but_for_out(getattr(_source, _name))

del _source, _name
