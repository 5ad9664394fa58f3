"""Text, logs and warnings on the way of a gradient."""

import io
import json
import logging
import os
import pprint
import re
import sys
import tokenize
import warnings

import pytest

import morula
from morula import grad, gradient, hessian, jvp, pullback, withgradient
from morula.testing import check_gradient

logger = logging.getLogger(__name__)


def test_logs_and_texts_do_not_get_in_the_way(caplog, path):
    def f(x):
        logger.warning("x is %s", x)
        logging.getLogger("other").error("twice: %r", 2 * x)
        text = json.dumps({"x": x, "list": [x, 1]})
        if re.match(r'\{"x": ', text) and re.search("list", text):
            return x * x * len(pprint.pformat([x]))
        return x

    n = len(pprint.pformat([3.0]))
    assert grad(f)(3.0) == 6.0 * n
    assert [record.getMessage() for record in caplog.records] == ["x is 3.0", "twice: 6.0"]


def test_warnings_are_given_once():
    def f(x):
        warnings.warn("here", UserWarning, stacklevel=1)
        return x * 2

    with pytest.warns(UserWarning, match="here") as seen:
        assert pullback(f, 1.0)[1](1.0) == (2.0,)
    assert len(seen) == 1


def test_numbers_read_from_text_are_constant():
    assert grad(lambda x: float(re.findall(r"\d+", f"{x} of 7")[-1]) * x)(2.0) == 7.0
    assert grad(lambda x: float(re.sub("[a-z]", "", "a7b")) * x)(2.0) == 7.0


@pytest.mark.parametrize(
    "substitute",
    [
        lambda fn: len(re.sub("a+|", fn, "baanaana", count=3)),
        lambda fn: re.subn("a+|", fn, "baanaana")[1],
        lambda fn: len(re.compile(b"a|").sub(fn, b"banana", 2)),
        lambda fn: re.compile("(an)").subn(fn, "banana")[1],
    ],
)
def test_functions_that_a_substitution_calls_are_differentiated(substitute):
    def f(x):
        seen = []

        def note(match):
            seen.append(x * x * match.end())
            return match.group() * 2

        n = substitute(note)
        return sum(seen) * n

    x, (slope,) = 3.0, gradient(f, 3.0)
    assert withgradient(f, x) == (f(x), (slope,))
    assert slope == 2 * f(x) / x
    assert jvp(f, (x,), (1.0,)) == (f(x), slope)
    assert hessian(f, x) == pytest.approx(slope / x)


def test_what_json_reads_is_constant():
    assert grad(lambda x: json.loads("[1, 2.5]")[1] * x)(2.0) == 2.5


def numbers_in(text):
    tokens = tokenize.tokenize(io.BytesIO(text.encode()).readline)
    return [float(t.string) for t in tokens if t.type == tokenize.NUMBER]


def test_tokens_are_constant(path):
    def f(x):
        a, b = numbers_in("2.5 * u + 3")
        return a * x * x + b

    assert grad(f)(2.0) == 10.0
    assert jvp(f, (2.0,), (1.0,)) == (13.0, 10.0)


def test_tokens_of_a_text_that_was_made_of_numbers():
    with pytest.warns(UserWarning, match="is read from a text"):
        assert grad(lambda x: numbers_in(f"{x} + 1")[0] * x)(2.0) == 2.0


def test_tokens_of_lines_that_code_of_the_user_gives():
    def f(x):
        read = []

        def lines():
            read.append(x * x)
            yield "a = 3\n"

        return sum(read) * len([*tokenize.generate_tokens(lines().__next__)])

    assert grad(f)(3.0) * 1.5 == f(3.0)


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        (re.match("(a+)b", "aab"), lambda m: m.end(1) + m.start() + m.span()[1]),
        (io.StringIO("abc"), lambda file: file.seek(2) + file.tell()),
        (io.BytesIO(b"abc"), lambda file: file.seek(1) + file.readable()),
        (sys.version_info, lambda version: version.major),
        (os.stat("."), lambda status: status.st_nlink),
        (os.terminal_size((80, 25)), lambda size: size.columns),
    ],
)
def test_what_is_asked_of_texts_files_and_the_system_beside_numbers(held, asked):
    def f(x):
        pairs = [(held, x), (held, x**2)]
        return sum(asked(thing) * value for thing, value in pairs)

    assert gradient(f, 1.5) == (pytest.approx(asked(held) * 4.0),)


def parsed(x):
    total = 0.0
    for line in "1,2;3,4".split(";"):
        a, b = map(float, line.split(","))
        total += a * x**2 + b * x
    return total * int("7")


def chosen_by_words(x):
    weights = {"up": x, "down": -(x**2)}
    steps = [weights[word] for word in " up down  up up".split()]
    return sum(steps) * len("a b".rsplit(" ")) * float("2.5")


@pytest.mark.parametrize("f", [parsed, chosen_by_words])
def test_numbers_and_words_of_constant_texts(f):
    assert "; 0 calls are" in str(morula.code_adjoint(f, 1.5)).split("\n")[0]
    check_gradient(f, 1.5)
    assert hessian(f, 1.5) == pytest.approx((f(1.6) - 2 * f(1.5) + f(1.4)) / 0.01, rel=1e-6)


def test_too_few_and_too_many_numbers_in_a_text():
    def f(x, text):
        a, b = map(float, text.split(","))
        return a * x + b

    assert gradient(f, 1.5, "3,4")[0] == 3.0
    for text, message in [("1", "not enough"), ("1,2,3", "too many"), ("1,z", "could not convert")]:
        with pytest.raises(ValueError, match=message):
            gradient(f, 1.5, text)
