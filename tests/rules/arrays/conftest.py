"""The rules under test, and those of numbers, which they build on."""

import morula.rules.arrays
import morula.rules.builtins
import morula.rules.operators  # noqa: F401
