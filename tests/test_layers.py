"""The layers of the package: imports go one way, `interop, mixed_mode -> rules -> core`.

All imports are read from the source with `ast`, those inside functions and under TYPE_CHECKING too.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "morula"
FILES = sorted(ROOT.rglob("*.py"))
ALLOWED_IN_CORE = {"bytecode", "plum"}  # besides the standard library
LAYERS_BELOW = {
    "core": {"core"},
    "rules": {"core", "rules"},
    "mixed_mode": {"core", "rules", "mixed_mode"},
    "interop": {"core", "rules", "mixed_mode", "interop"},
}
DOOR = "morula.core.extend"


def module_name(path):
    """morula/core/ir.py -> morula.core.ir; morula/core/__init__.py -> morula.core."""
    parts = ("morula", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer(module):
    """The second part of a module's name: morula.core.ir -> core; None for morula itself."""
    return (module.split(".") + [None])[1]


def imports(source, module, is_package, modules):
    """Pairs of line and full module name for every import in a source text.

    `from p import n` imports the module p.n if there is one among `modules`, otherwise p.
    """
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                yield node.lineno, inner if inner in modules else origin


def faults(source, module, is_package, modules):
    """The imports of a module that point up, or go round the door, as lines of text."""
    here = layer(module)
    for line, imported in imports(source, module, is_package, modules):
        top = imported.split(".")[0]
        if top != "morula":
            if here == "core" and top not in ALLOWED_IN_CORE | sys.stdlib_module_names:
                yield f"{module}:{line} imports {imported}: the core knows no library"
        elif here in LAYERS_BELOW:
            if layer(imported) not in LAYERS_BELOW[here]:
                yield f"{module}:{line} imports {imported}, which is not below {here}"
            elif here == "rules" and layer(imported) == "core" and imported != DOOR:
                yield f"{module}:{line} imports {imported}: the door for rules is {DOOR}"


MODULES = {module_name(path) for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path):
    is_package = path.name == "__init__.py"
    found = faults(path.read_text(encoding="utf-8"), module_name(path), is_package, MODULES)
    assert list(found) == []


def test_every_layer_is_known():
    folders = {p.parent.relative_to(ROOT).parts[0] for p in FILES if p.parent != ROOT}
    assert folders <= set(LAYERS_BELOW)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("morula.core.ir", "import numpy as np"),
        ("morula.core.ir", "from scipy import linalg"),
        ("morula.core.ir", "from morula.rules import scalars"),
        ("morula.core.ir", "def f():\n    import morula.interop.jax"),
        ("morula.core.ir", "from ..rules.scalars import sin"),
        ("morula.core.ir", "from .. import rules"),
        ("morula.core.ir", "from morula import gradient"),
        ("morula.rules.scalars", "from morula.core.ir import Block"),
        ("morula.rules.scalars", "from morula.core import ir"),
        ("morula.rules.scalars", "from ..core import registry"),
        ("morula.rules.scalars", "import morula.mixed_mode"),
        ("morula.mixed_mode.jvp", "from morula.interop import jax"),
        ("morula.interop.jax", "import morula"),
    ],
)
def test_an_import_that_points_up_is_found(module, source):
    modules = {"morula.core.ir", "morula.core.registry", "morula.rules", "morula.interop.jax"}
    assert len(list(faults(source, module, False, modules))) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("morula.core.ir", "import ast, sys, plum, bytecode.instr\nfrom .errors import x"),
        ("morula.core.ir", "from morula.core import errors"),
        ("morula.rules.scalars", "import numpy as np\nfrom morula.core.extend import rrule"),
        ("morula.rules.scalars", "from morula.core import extend\nfrom . import ufuncs"),
        ("morula.mixed_mode.jvp", "from morula.core.ir import Block\nfrom morula.rules import a"),
        ("morula.interop.jax", "import jax\nfrom morula.core.extend import rrule"),
        ("morula", "from morula.mixed_mode import jvp\nfrom morula.core import extend"),
        ("morula.testing", "from morula import gradient"),
    ],
)
def test_an_import_that_points_down_is_not(module, source):
    modules = {"morula.core.extend", "morula.core.errors", "morula.rules.ufuncs"}
    assert list(faults(source, module, module == "morula", modules)) == []


def test_import_morula_loads_no_optional_library_and_not_scipy():
    program = "import sys, morula; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    loaded = {name.split(".")[0] for name in run.stdout.split()}
    assert "morula" in loaded
    heavy = {"scipy", "jax", "jaxlib", "torch", "numba", "autograd", "pandas", "matplotlib"}
    assert loaded & heavy == set()


NOTE_RULES = """
import pkgutil
import sys
from importlib import import_module
from typing import Any
import plum

register = plum.Function.register
codes = {}

def noted(self, function, *args, **kwargs):
    signature = plum.Signature.from_callable(function)
    types = *signature.types, signature.varargs
    key = id(self), tuple(object if t is Any else t for t in types)
    code = function.__code__
    assert codes.setdefault(key, code) is code, f"{codes[key]} is hidden by {code}"
    return register(self, function, *args, **kwargs)

plum.Function.register = noted
import morula.rules
for module in pkgutil.walk_packages(morula.rules.__path__, "morula.rules."):
    if module.name != "morula.rules.templates" or sys.version_info >= (3, 14):
        import_module(module.name)
assert len(codes) > 500
"""


def test_no_rule_hides_another_for_the_same_types():
    subprocess.run([sys.executable, "-c", NOTE_RULES], check=True)
