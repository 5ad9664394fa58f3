"""What lowering and emitting leave of a function does what the function does, on every construct."""

import copy
import doctest
import importlib.util
import inspect
import sys
import types

import pytest

import morula
from morula.core.bytecode import lower
from morula.core.bytecode.instructions import decode
from morula.core.emit import emit
from morula.core.errors import UnsupportedError
from morula.core.verify import verify
from tests.core import programs
from tests.core.programs import PROGRAMS


def round_trip(code, namespace):
    """Code -> SSA form -> code."""
    return emit(verify(lower(code, namespace).copy()), code, namespace)


def emitted(f):
    """The function with its code sent through the SSA form."""
    new = types.FunctionType(
        round_trip(f.__code__, f.__globals__),
        f.__globals__,
        f.__name__,
        f.__defaults__,
        f.__closure__,
    )
    new.__kwdefaults__ = f.__kwdefaults__
    return new


class Outcome:
    """All that a call shows: its result or exception, what it left in its arguments, in globals."""

    def __init__(self, f, args):
        programs.log.clear()
        programs.total = 10
        self.exception = self.result = None
        args = copy.deepcopy(args)
        try:
            self.result = f(*args)
        except Exception as exception:
            cause = exception.__cause__
            self.exception = (type(exception), str(exception), type(cause), str(cause))
        self.args = args
        self.log = list(programs.log)
        self.total = programs.total

    def shown(self):
        return [
            _readable(x) for x in (self.result, self.exception, self.args, self.log, self.total)
        ]


def _readable(x):
    """A value as text in which types count: no 1 equals True, no -0.0 equals 0.0."""
    if type(x) in (list, tuple):
        return [type(x).__name__, *map(_readable, x)]
    if type(x) is set:
        return {"set", *map(repr, x)}
    if type(x).__repr__ is object.__repr__ or hasattr(x, "__next__"):
        return type(x).__name__
    return repr(x)


@pytest.mark.parametrize(
    ("f", "args"), PROGRAMS, ids=[f"{f.__name__}-{i}" for i, (f, _) in enumerate(PROGRAMS)]
)
def test_a_function_does_the_same_after_the_round_trip(f, args):
    new = emitted(f)
    expected = Outcome(f, args)
    assert Outcome(new, args).shown() == expected.shown()
    assert Outcome(new, args).shown() == expected.shown()  # warm: CPython has specialised it


@pytest.mark.parametrize("f", dict.fromkeys(f for f, _ in PROGRAMS), ids=lambda f: f.__name__)
def test_the_round_trip_keeps_signature_and_name(f):
    new = emitted(f)
    assert inspect.signature(new) == inspect.signature(f)
    for name in ("co_name", "co_qualname", "co_filename", "co_firstlineno", "co_freevars"):
        assert getattr(new.__code__, name) == getattr(f.__code__, name)
    assert new.__code__.co_flags == f.__code__.co_flags
    assert new.__doc__ == f.__doc__


def test_a_method_keeps_super_and_its_closure():
    for name in ("scaled", "parent", "explicit", "shared", "rebound"):
        method = vars(programs.Pixel)[name]
        pixel = programs.Pixel(3, 4)
        args = (2,) if name == "scaled" else ()
        new = emitted(method)
        assert new.__closure__ == method.__closure__
        if name == "parent":
            assert new(pixel).kind == method(pixel).kind == "point"
        elif name == "shared":
            assert new(pixel)[0] == method(pixel)[0]
        else:
            assert new(pixel, *args) == method(pixel, *args)


def test_a_super_of_the_users_own_is_called_as_it_is():
    scope = {"super": lambda *args: f"super of {len(args)}"}
    source = """
    class C:
        def f(self):
            return super(), super().upper(), super(C, self), super(C, self).upper(), __class__
    """
    exec(inspect.cleandoc(source), scope)
    f = scope["C"].f
    new = emitted(f)
    assert new(scope["C"]()) == f(scope["C"]())


def test_a_free_variable_is_shared_with_the_code_emitted():
    count = 0

    def step(delete=False):
        nonlocal count
        count += 1
        if delete:
            del count
        return count

    new = emitted(step)
    assert [step(), new(), step(), new()] == [1, 2, 3, 4]
    assert count == 4
    with pytest.raises(NameError, match="cannot access free variable 'count'"):
        new(delete=True)
    with pytest.raises(UnboundLocalError):
        count
    count = 7
    assert new() == 8


def test_globals_are_those_of_the_function():
    scope = {}
    exec("def f(x):\n    global y\n    y = x\n    return g(y)\ndef g(x):\n    return -x", scope)
    new = emitted(scope["f"])
    assert new(3) == -3
    assert scope["y"] == 3
    scope["g"] = abs
    assert new(-4) == 4
    scope["__builtins__"] = {}
    del scope["g"]
    with pytest.raises(NameError, match="name 'g' is not defined"):
        new(1)


def test_deep_loops_do_not_deepen_the_stack():
    def f(n):
        x = 0
        while n:
            n -= 1
            x += n % 3
        return x

    assert emitted(f)(10**6) == f(10**6)


def test_equal_constants_stay_apart():
    def f():
        return -0.0, 0.0, 1, True, 1.0, (1, 2), (True, 2), "a", b"a", 0j, -0j, (0.0,), (-0.0,)

    assert repr(emitted(f)()) == repr(f())


def test_exceptions_show_the_users_lines():
    def f(x):
        y = [1, 2]
        if x:
            return (
                y[0]
                + y[x]
            )  # fmt: skip
        return y

    def line_of(g):
        with pytest.raises(IndexError) as caught:
            g(5)
        return [t.lineno for t in caught.traceback][1:]

    assert line_of(emitted(f)) == line_of(f)


@pytest.mark.parametrize("f", dict.fromkeys(f for f, _ in PROGRAMS), ids=lambda f: f.__name__)
def test_every_call_has_a_position_of_the_users_source(f):
    known = {p[0] for p in f.__code__.co_positions()}
    for call in lower(f.__code__, f.__globals__).calls():
        line = call.position.line
        assert line is None or line in known
    shown = {p[0] for p in round_trip(f.__code__, f.__globals__).co_positions()}
    assert shown <= known | {f.__code__.co_firstlineno}


# -- what is not lowered


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is new in CPython 3.12")
def test_type_parameters_are_refused_only_where_they_are_made():
    scope = {}
    exec("def f(x):\n    def g[T](y: T) -> T:\n        return y\n    return g(x)", scope)
    assert emitted(scope["f"])(3) == 3


def test_instructions_have_canonical_names():
    def f(xs):
        return [x for x in xs if x]

    assert all(ins.op == ins.op.lower() for ins in decode(f.__code__))


# -- the standard library


LIBRARY = """
    abc argparse ast bisect calendar cmd codecs collections colorsys configparser copy csv
    dataclasses difflib dis enum fnmatch fractions functools gettext glob hashlib heapq html
    http.cookies inspect ipaddress json.decoder json.encoder linecache locale mimetypes numbers
    operator optparse pickle pprint quopri random re reprlib sched shlex statistics string
    stringprep tabnanny textwrap timeit token tokenize traceback types typing urllib.parse uuid
    warnings weakref xml.dom.minidom zipfile _pydecimal _pydatetime _pyio
""".split()


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"this CPython has no {name}")


def codes_of(source, filename):
    """All code objects of functions in a file, nested ones too."""
    work = [compile(source, filename, "exec")]
    while work:
        code = work.pop()
        if code.co_flags & inspect.CO_OPTIMIZED:
            yield code
        work += [c for c in code.co_consts if isinstance(c, types.CodeType)]


@pytest.mark.parametrize("name", LIBRARY)
def test_the_standard_library_is_lowered_or_refused(name):
    source = module(name)
    emitted_ones = 0
    for code in codes_of(inspect.getsource(source), source.__file__):
        new, reason = round_trip_or_reason(code, vars(source))
        if new is None:
            assert code.co_filename in reason
            assert "the instruction" not in reason
            assert "the intrinsic function" not in reason
        else:
            emitted_ones += 1
            assert new.co_freevars == code.co_freevars
    assert emitted_ones


def round_trip_or_reason(code, namespace):
    """The code emitted, or why there is none."""
    try:
        return round_trip(code, namespace), ""
    except UnsupportedError as error:
        return None, str(error)


def functions_of(module):
    for value in list(vars(module).values()):
        owners = [value] if not inspect.isclass(value) else list(vars(value).values())
        for f in owners:
            f = getattr(f, "fget", None) or getattr(f, "__func__", f)
            f = getattr(f, "__wrapped__", f)
            if isinstance(f, types.FunctionType) and f.__module__ == module.__name__:
                yield f


@pytest.mark.parametrize(
    "name",
    ["_pydecimal", "collections", "difflib", "fractions", "heapq", "ipaddress", "random",
     "statistics", "textwrap", "pprint", "string", "shlex", "calendar", "functools"],
)  # fmt: skip
def test_the_examples_of_the_standard_library_run_on_emitted_code(name, monkeypatch):
    original = module(name)
    spec = importlib.util.spec_from_file_location(f"emitted_{name}", original.__file__)
    twin = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, twin.__name__, twin)
    spec.loader.exec_module(twin)
    replaced = 0
    for f in functions_of(twin):
        new, _ = round_trip_or_reason(f.__code__, f.__globals__)
        if new is not None:
            f.__code__ = new
            replaced += 1
    assert replaced
    tests = doctest.DocTestFinder().find(twin)
    runner = doctest.DocTestRunner(verbose=False)
    original_tests = doctest.DocTestRunner(verbose=False)
    silent = []
    for test in doctest.DocTestFinder().find(original):
        original_tests.run(test, out=silent.append)
    for test in tests:
        runner.run(test, out=silent.append, clear_globs=False)
    assert runner.failures == original_tests.failures, "".join(silent)
    assert runner.tries == original_tests.tries


def test_a_display_of_constants_is_one_call():
    def f(x):
        return [1.0, 2.0, 3.0][x]

    printed = str(lower(f.__code__, f.__globals__))
    assert "build_list(1.0, 2.0, 3.0)" in printed
    assert "list_extend" not in printed


def test_what_cannot_be_spread_is_the_error_of_the_call():
    def f(x):
        return [*3]

    with pytest.raises(TypeError):
        f(1.0)
    with pytest.raises(TypeError):
        morula.grad(f)(1.0)
