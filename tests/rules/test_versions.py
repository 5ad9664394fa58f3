"""NumPy and SciPy of all the versions that are supported have rules for what they have."""

import importlib
import pkgutil
import sys

import numpy as np
import pytest

import morula
from morula.rules.versions import present

APART = ("morula.interop.",)  # bridges to libraries that need not be installed
MODULES = [
    module.name
    for module in pkgutil.walk_packages(morula.__path__, "morula.")
    if not module.name.startswith(APART)
]


@pytest.mark.parametrize("name", MODULES)
def test_every_module_can_be_imported(name):
    if name == "morula.rules.templates" and sys.version_info < (3, 14):
        pytest.skip("of CPython 3.14")
    importlib.import_module(name)


def test_what_a_version_lacks_is_left_out():
    assert present(np, "sum a_function_of_a_later_version prod") == [np.sum, np.prod]
