"""The rules under test."""

import morula.rules.arrays
import morula.rules.linalg  # noqa: F401
