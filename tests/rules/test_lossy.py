"""Numbers that are read from texts and bytes: the lost derivative is said, constant texts are free."""

import ast
import contextlib
import csv
import ctypes
import io
import json
import logging
import mmap
import re
import sqlite3
import string
import struct
import tempfile
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from morula import NoRuleError, grad, gradient, hessian, jvp, pullback, why
from morula.core import general

X = 1.37
FIRST_ORDER = {
    "pullback": lambda f: pullback(f, X)[1](1.0)[0],
    "grad": lambda f: grad(f)(X),
    "jvp": lambda f: jvp(f, (X,), (1.0,))[1],
}
SECOND_ORDER = {
    "reverse over reverse": lambda f: gradient(lambda x: gradient(f, x)[0], X)[0],
    "forward over reverse": lambda f: hessian(f, X),
    "reverse over forward": lambda f: gradient(lambda x: jvp(f, (x,), (1.0,))[1], X)[0],
    "forward over forward": lambda f: jvp(lambda x: jvp(f, (x,), (1.0,))[1], (X,), (1.0,))[1],
}
ORDERS = FIRST_ORDER | SECOND_ORDER

READ_FROM_TEXTS = {
    "str": lambda x: float(str(x * 2)),
    "repr": lambda x: float(repr(x * 2)),
    "f-string": lambda x: float(f"{x * 2}"),
    "f-string with a format": lambda x: float(f"{x * 2:.17g}"),
    "f-string of parts": lambda x: float(f"{x:.3f}{2}"),
    "format": lambda x: float(format(x, ".6f")),
    "str.format": lambda x: float("{:.6f}".format(x)),
    "percent": lambda x: float("%.6f" % x),
    "concatenation": lambda x: float("0" + str(x)),
    "slice": lambda x: float(("x=" + str(x))[2:]),
    "strip": lambda x: float((" " + str(x) + "\n").strip()),
    "regular expression": lambda x: float(re.search(r"=(.*)", f"x={x}").group(1)),
    "split by an expression": lambda x: float(re.split("[;,]", f"2;{x}")[1]),
    "split": lambda x: sum([float(t) for t in ",".join([str(x), "2.5"]).split(",")]),
    "map": lambda x: sum(map(float, (str(x) + " 2.5").split())),
    "array": lambda x: np.array(" ".join(map(str, [x * 2, x])).split(), float).sum(),
    "array of texts": lambda x: np.array([str(x)]).astype(float)[0],
    "astype": lambda x: np.array([x]).astype(str).astype(float)[0],
    "list": lambda x: float([f"{x * i:.4f}" for i in range(3)][-1]),
    "StringIO": lambda x: float(written(io.StringIO(), str(x))),
    "Decimal": lambda x: float(Decimal(str(x * 2))),
    "Fraction": lambda x: float(Fraction(str(x * 2))),
    "complex": lambda x: complex(str(x * 2)).real,
    "eval": lambda x: eval(str(x * 2)),
    "eval of code": lambda x: eval(compile(str(x * 2), "text", "eval")),
    "literal": lambda x: ast.literal_eval(str([x * 2]))[0],
    "replaced": lambda x: float(re.sub("=", "", f"={x * 2}")),
    "replaced by a function": lambda x: float(re.sub("x", lambda m: str(x * 2), "x")),
    "template": lambda x: float(string.Template("$x").substitute(x=x * 2)),
    "helper": lambda x: parsed(str(x)),
    "syntax tree": lambda x: ast.parse(str(x * 2)).body[0].value.value,
    "walk along a syntax tree": lambda x: literals(ast.parse(f"y = {x * 2}"))[0],
    "syntax tree that is run": lambda x: eval(compile(ast.parse(str(x), mode="eval"), "x", "eval")),
    "exec": lambda x: after(f"y = {x * 2}")["y"],
    "exec of code": lambda x: after(compile(f"y = {x * 2}", "text", "exec"))["y"],
    "exec of a syntax tree": lambda x: after(compile(ast.parse(f"y = {x}"), "text", "exec"))["y"],
    "print": lambda x: float(printed(io.StringIO(), x)),
    "print to a file outside": lambda x: float(printed(MEMORY, x)),
    "print to an object": lambda x: float(printed(Sink(), x)),
    "print to what stands for the console": lambda x: float(redirected(io.StringIO(), x)),
    "writer of csv outside": lambda x: float(of_row(SINK, WRITER, x)),
    "writer of csv and a file outside": lambda x: float(of_row(MEMORY, MEMORY_WRITER, x)),
    "log": lambda x: float(logged(x)),
    "log outside": lambda x: float(texts_kept(KEPT, x)),
    "file": lambda x: float(through_file(x)),
}


class Sink:
    def __init__(self):
        self.texts = []

    def write(self, text):
        self.texts.append(text)

    def getvalue(self):
        return self.texts[0]


class Kept:
    def __init__(self):
        self.texts = []

    def put(self, x):
        self.texts.append(str(x * 2))

    def last(self):
        return float(self.texts[-1])


MEMORY, SINK, KEPT = io.StringIO(), Sink(), Kept()
MEMORY_WRITER, WRITER = csv.writer(MEMORY), csv.writer(SINK)
LOG = logging.getLogger("tests.rules.test_lossy")


def literals(tree):
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]


def after(text):
    names = {}
    exec(text, names)
    return names


def printed(stream, x):
    if isinstance(stream, io.StringIO):
        stream.seek(0)
        stream.truncate()
    print(x * 2, 3, sep=";", end=" ", file=stream, flush=False)
    return stream.getvalue().split(";")[0]


def redirected(stream, x):
    with contextlib.redirect_stdout(stream):
        print(x * 2)
    return stream.getvalue()


def of_row(stream, writer, x):
    if isinstance(stream, io.StringIO):
        stream.seek(0)
        stream.truncate()
    else:
        stream.texts.clear()
    writer.writerow(v for v in [x * 2, 1.0])
    return stream.getvalue().split(",")[0]


def logged(x):
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    LOG.addHandler(handler)
    LOG.warning("%s", x * 2)
    LOG.removeHandler(handler)
    return stream.getvalue()


def texts_kept(kept, x):
    kept.put(x)
    return kept.last()


def through_file(x):
    with tempfile.TemporaryFile("w+") as file:
        file.write(str(x * 2))
        file.seek(0)
        return file.read()


def written(stream, text):
    stream.write(text)
    return stream.getvalue()


def parsed(text):
    return float(text)


@pytest.mark.parametrize("mode", FIRST_ORDER)
@pytest.mark.parametrize("case", READ_FROM_TEXTS)
def test_a_number_that_is_read_from_a_text_of_numbers_warns(case, mode):
    f = READ_FROM_TEXTS[case]
    with pytest.warns(UserWarning, match=r"is read from a text that was made of numbers.*\n.*py:"):
        assert FIRST_ORDER[mode](lambda x: f(x) + x * x) == pytest.approx(2 * X)


ALONE = READ_FROM_TEXTS | {
    "argument in an f-string": lambda x: float(f"{x}"),
    "slice of an f-string": lambda x: float(f"a{x:.3f}"[1:]),
    "format_map": lambda x: float("{a:.3f}".format_map({"a": x})),
    "% with a dict": lambda x: float("%(a).3f" % {"a": x}),
    "map of str": lambda x: float("".join(map(str, [x]))),
    "formatter": lambda x: float(string.Formatter().format("{}", x)),
    "of NumPy's": lambda x: float(np.format_float_positional(x)),
    "parts of an f-string": lambda x: sum(float(t) for t in f"{x} {x}".split()),
}


@pytest.mark.parametrize("case", ALONE)
def test_it_warns_where_the_function_that_reads_is_compiled(case):
    with pytest.warns(UserWarning, match=r"is read from a text that was made of numbers.*\n.*py:"):
        assert gradient(ALONE[case], X) == (0.0,)


def test_a_scalar_of_numpys_that_is_made_of_an_f_string_is_refused():
    with pytest.raises(NoRuleError, match=r"numpy\.float64"):
        gradient(lambda x: np.float64(f"{x}"), X)


@pytest.mark.parametrize("mode", SECOND_ORDER)
@pytest.mark.parametrize("case", ["f-string of parts", "split", "Decimal"])
def test_derivatives_of_derivatives_warn_too(case, mode):
    f = READ_FROM_TEXTS[case]
    with pytest.warns(UserWarning, match="is read from a text"):
        assert SECOND_ORDER[mode](lambda x: f(x) + x * x) == pytest.approx(2.0)


def test_the_warning_names_the_users_line():
    def f(x):
        text = json.dumps({"w": [x * 2]})
        return json.loads(text)["w"][0] * x  # here

    line = f.__code__.co_firstlineno + 2
    for derivative in (FIRST_ORDER["pullback"], FIRST_ORDER["grad"]):
        with pytest.warns(UserWarning, match=f"test_lossy.py:{line}, in f"):
            derivative(f)
    with pytest.raises(NoRuleError, match="Scanner"):
        jvp(f, (X,), (1.0,))


def of_a_file(x):
    rows = [[float(t) for t in line.split(",")] for line in ("1.5,2.25", "2.5,3.75")]
    print(f"{x:.4f} {x}", str(x), file=io.StringIO())
    return rows[0][0] * x * x + rows[1][1] * float("2.5") * x


def in_keys(x):
    d = {f"{x:.3f}": 2.5 * x, "w": x * x}
    return d[f"{x:.3f}"] + d.get("w") + d.pop(f"{x:.3f}")


def in_a_log(x):
    lines = []
    for i in range(3):
        lines.append(f"{i}: {x:.4f}")
        x = x * 0.5
    return x * x * len("\n".join(lines))


class Named:
    def __init__(self, name, w):
        self.name = name
        self.w = w


def in_an_object(x):
    run = Named(f"run {x:.4f}", x * 2)
    return run.w * run.w * len(run.name)


def beside_a_number(x):
    pair = ("2.5", x * x, f"{x:.4f}")
    return float(pair[0]) * pair[1]


FREE = [of_a_file, in_keys, in_a_log, in_an_object, beside_a_number]


@pytest.mark.parametrize(
    ("f", "order"),
    [(f, order) for f in FREE for order in (FIRST_ORDER if f is not in_an_object else ORDERS)],
)
def test_texts_that_no_gradient_depends_on_are_free(f, order):
    h = 1e-4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ORDERS[order](f)
    if order in FIRST_ORDER:
        expected = (f(X + h) - f(X - h)) / (2 * h)
    else:
        expected = (f(X + h) - 2 * f(X) + f(X - h)) / h**2
    assert found == pytest.approx(expected, rel=1e-5)


BYTES = {
    "struct": lambda x: struct.unpack("d", struct.pack("d", x * 2))[0],
    "struct.unpack_from": lambda x: struct.unpack_from("d", struct.pack("d", x))[0],
    "struct.pack_into": lambda x: struct.unpack("d", packed(bytearray(8), x))[0],
    "bytes that are stored": lambda x: struct.unpack("d", stored(bytearray(8), x))[0],
    "memory of the system": lambda x: struct.unpack("d", stored(mmap.mmap(-1, 8), x)[:])[0],
    "data base": lambda x: sqlite3.connect(":memory:").execute("select ?", (x * 2,)).fetchone()[0],
    "table": lambda x: out_of_a_table(sqlite3.connect(":memory:"), x),
    "frombuffer": lambda x: np.frombuffer(np.array([x * 2]).tobytes())[0],
    "fromstring": lambda x: np.fromstring(str(x * 2), sep=" ")[0],
    "hex": lambda x: float.fromhex((x * 2).hex()),
    "ctypes": lambda x: ctypes.c_double(x * 2).value,
    "ctypes array": lambda x: (ctypes.c_double * 2)(x, x)[1],
    "loadtxt": lambda x: np.loadtxt(io.StringIO(str(x))),
}


def packed(buffer, x):
    struct.pack_into("d", buffer, 0, x)
    return buffer


def stored(buffer, x):
    buffer[:] = struct.pack("d", x * 2)
    return buffer


def out_of_a_table(connection, x):
    connection.execute("create table numbers (x real)")
    connection.execute("insert into numbers values (?)", (x,))
    return connection.execute("select x from numbers").fetchone()[0]


@pytest.mark.parametrize("mode", FIRST_ORDER)
@pytest.mark.parametrize("case", BYTES)
def test_numbers_that_were_bytes_are_refused(case, mode):
    with pytest.raises(NoRuleError, match="rule for"):
        FIRST_ORDER[mode](lambda x: BYTES[case](x) + x * x)


def test_constant_bytes_are_free_in_forward_mode():
    data = struct.pack("2d", 2.5, 3.5)

    def f(x):
        a, b = struct.unpack("2d", data)
        return a * x + b * x * x + len(struct.pack("d", x))

    assert FIRST_ORDER["jvp"](f) == 2.5 + 7.0 * X


def test_dict_keys_keep_the_derivative():
    for derivative in FIRST_ORDER.values():
        assert derivative(lambda x: sum({x * 2: "a"})) == 2.0


@pytest.mark.filterwarnings("ignore")
def test_why_names_the_line():
    found = why(lambda x: sum(float(t) for t in (str(x) + " 2.5").split()), X)
    assert "str ends it" in str(found)
    assert "test_lossy.py" in str(found)


def test_texts_are_forgotten_when_the_function_has_ended():
    pullback(lambda x: print(end=f"{x:.0f}"[:0]) or x * x, X)
    assert not general.LOSSY


def checked(x):
    if x < 0:
        raise ValueError(f"negative: {x}")
    if x > 100:
        raise RuntimeError(f"too large: {x:.2f}") from None
    message = ""
    for i in range(3):
        x = x * x
        message = f"{i}: {x}"
    return x * len(message[:1])


def test_messages_leave_programs_compiled():
    g = grad(checked)
    assert g(1.5) == pytest.approx(8 * 1.5**7)
    programs = g.__dict__["__morula__"].programs.values()
    assert [p.reason for p in programs] == [""]
    with pytest.raises(ValueError, match=r"negative: -1\.5"):
        g(-1.5)
    with pytest.raises(RuntimeError, match=r"too large: 101\.00"):
        g(101.0)


def test_numbers_out_of_messages_are_told():
    def f(x):
        try:
            raise ValueError(f"{x}")
        except ValueError as error:
            return float(str(error)) * x

    with pytest.warns(UserWarning, match="text"):
        assert gradient(f, 3.0) == (3.0,)


def through_rows(x):
    table = io.StringIO()
    csv.writer(table).writerow([x, 2.0])
    table.seek(0)
    return sum(float(cell) for row in csv.reader(table) for cell in row) * x


def through_dictionaries(x):
    table = io.StringIO()
    writer = csv.DictWriter(table, ["a", "b"])
    writer.writerow({"a": x, "b": 2.0})
    return sum(map(float, table.getvalue().split(","))) * x


def read_as_rows(x):
    return sum([float(cell) for cell in next(csv.reader([f"{x},2.0"]))]) * x


TABLES = [through_rows, through_dictionaries, read_as_rows]


@pytest.mark.parametrize("mode", SECOND_ORDER)
@pytest.mark.parametrize("f", TABLES)
def test_numbers_out_of_tables_are_told_in_second_order(f, mode):
    with pytest.warns(UserWarning, match="read from a text"):
        assert SECOND_ORDER[mode](lambda x: f(x) * x) == pytest.approx(2 * (X + 2.0))


@pytest.mark.parametrize("f", TABLES)
def test_numbers_out_of_tables_are_told(f):
    with pytest.warns(UserWarning, match="read from a text"):
        assert gradient(f, 3.0) == (5.0,)
    with pytest.warns(UserWarning, match="read from a text"):
        assert jvp(f, (3.0,), (1.0,)) == (15.0, 5.0)


def test_what_is_printed_or_written_to_tables_is_that_of_the_plain_call(capsys):
    def f(x):
        file = io.StringIO()
        print("a", x, None, end="", sep=", ", file=file)
        print(file=file)
        writer = csv.writer(file, delimiter=";", quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(["a;b", x, None, 2])
        writer.writerows([(x, x), "cd"])
        sink = Sink()
        print(x, 2, file=sink)
        print("end", x)
        texts.append((file.getvalue(), sink.texts))
        return x * x

    texts = []
    f(X)
    for derivative in ORDERS.values():
        derivative(f)
    for file, pieces in texts:
        assert re.sub(r"1\.[0-9]+", "X", file) == texts_of_f
        assert len(pieces) == 4
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(texts)


texts_of_f = 'a, X, None\n"a;b";X;"";2\r\nX;X\r\n"c";"d"\r\n'


def test_errors_of_tables_are_those_of_csv():
    def f(x):
        csv.writer(io.StringIO()).writerow(x)

    for derivative in FIRST_ORDER.values():
        with pytest.raises(csv.Error, match="iterable expected"):
            derivative(f)


def test_tables_of_no_numbers_are_free():
    def f(x):
        return x * sum(float(cell) for cell in next(csv.reader(["1.5,2.0"])))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gradient(f, 3.0) == (3.5,)
