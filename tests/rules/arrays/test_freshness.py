"""What is declared to give new arrays does."""

import numpy as np
import pytest

from morula.rules.arrays.sequences import BINARY, UNARY


@pytest.mark.parametrize("fn", [f for f in (*UNARY, *BINARY) if f not in (np.real, np.imag)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_results_share_no_memory(fn):
    args = (np.eye(2),) * (1 if fn in UNARY else 2)
    assert not np.shares_memory(fn(*args), args[0])
