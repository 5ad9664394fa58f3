"""Dates and times: exact where they count microseconds, constant where they count in whole steps."""

import datetime
import time
from datetime import date, timedelta, timezone

import pytest

from morula import gradient, hessian, jvp

DAY = timedelta(days=1)
START = datetime.datetime(2020, 1, 1, tzinfo=timezone.utc)
HOUR = 3600.0


def seconds_after_start(moment):
    return (moment - START).total_seconds()


LINEAR = {  # programs of a number of days that are linear in it, and their slopes
    "days": (lambda x: timedelta(x).total_seconds(), 86400),
    "keywords": (lambda x: timedelta(hours=x, weeks=x).total_seconds(), HOUR + 604800),
    "microseconds": (lambda x: timedelta(0, x, milliseconds=1e3 * x) / timedelta(seconds=1), 2),
    "multiple": (lambda x: (DAY * x).total_seconds(), 86400),
    "multiple from the left": (lambda x: (x * DAY + x * DAY).total_seconds(), 2 * 86400),
    "sum": (lambda x: sum([x * DAY, DAY, DAY * x], timedelta()).total_seconds(), 2 * 86400),
    "difference": (lambda x: (DAY - x * DAY) / DAY, -1),
    "part": (lambda x: (DAY * x / 4 + DAY * x // 4).total_seconds(), 86400 / 2),
    "rest": (lambda x: (x * DAY) % timedelta(hours=7) / timedelta(hours=1), 24),
    "divisor of a rest": (lambda x: (DAY % (x * timedelta(hours=7))) / timedelta(hours=1), -14),
    "divmod": (lambda x: divmod(x * DAY, timedelta(hours=7))[1] / timedelta(hours=1), 24),
    "signs": (lambda x: (abs(-x * DAY) + (+(x * DAY))) / DAY, 2),
    "later": (lambda x: seconds_after_start(START + x * DAY), 86400),
    "earlier": (lambda x: seconds_after_start(timedelta(days=1) + START - x * DAY), -86400),
    "in place": (lambda x: seconds_after_start(moved(START, x * DAY)), 86400),
    "clock": (lambda x: datetime.datetime.fromtimestamp(x).timestamp(), 1),
    "clock of a zone": (lambda x: datetime.datetime.fromtimestamp(x, timezone.utc).timestamp(), 1),
    "zone": (lambda x: seconds_after_start((START + x * DAY).astimezone(timezone(DAY / 4))), 86400),
    "field": (lambda x: seconds_after_start((START + x * DAY).replace(hour=3)), 86400),
}


def moved(moment, by):
    moment += by
    moment -= by
    moment += by
    return moment


@pytest.mark.parametrize("name", LINEAR)
def test_times_have_the_derivative_of_their_exact_value(name):
    f, slope = LINEAR[name]
    step = 1e-3
    assert (f(1.3 + step) - f(1.3 - step)) / (2 * step) == pytest.approx(slope, rel=1e-6)
    assert gradient(f, 1.3) == (pytest.approx(slope),)
    assert jvp(f, (1.3,), (2.0,))[1] == pytest.approx(2 * slope)
    value, (slope_of_square,) = f(1.3), gradient(lambda x: f(x) ** 2, 1.3)
    assert slope_of_square == pytest.approx(2 * value * slope)
    assert hessian(lambda x: f(x) ** 2, 1.3) == pytest.approx(2 * slope**2)


def test_a_quotient_of_times():
    assert gradient(lambda x: DAY / (x * DAY), 2.0) == (pytest.approx(-0.25),)
    assert gradient(lambda x: (DAY / x).total_seconds(), 2.0) == (pytest.approx(-86400 / 4),)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * timedelta(days=x).days,
        lambda x: x * (x * DAY).seconds,
        lambda x: x * (x * DAY // timedelta(hours=7)),
        lambda x: x * (START + x * DAY).hour,
        lambda x: x * (START + x * DAY).date().day,
        lambda x: x * (date(2020, 1, 1) + x * DAY).day,
        lambda x: x * (date(2020, 1, 1) - x * DAY - date(2019, 1, 1)).days,
        lambda x: x * (START + x * DAY).replace(microsecond=0).timestamp(),
        lambda x: x * (START + x * DAY).timetuple().tm_yday,
        lambda x: x * time.gmtime(86400 * x).tm_yday,
        lambda x: x * (START + x * DAY).weekday(),
        lambda x: x * len((START + x * DAY).isoformat()),
        lambda x: x * date(2020, int(3 * x), 1).month,
    ],
)
def test_whole_steps_are_constant(f):
    assert gradient(f, 1.3) == (pytest.approx(f(1.3) / 1.3),)


def internal_rate(rate, flows):
    """The net present value of payments at dates."""
    first = flows[0][0]
    return sum(paid / (1 + rate) ** ((day - first).days / 365) for day, paid in flows)


def test_dates_beside_numbers():
    flows = [(date(2020, 1, 1), -100.0), (date(2020, 7, 1), 30.0), (date(2021, 1, 1), 90.0)]
    h = 1e-6
    slope = (internal_rate(0.1 + h, flows) - internal_rate(0.1 - h, flows)) / (2 * h)
    assert gradient(internal_rate, 0.1, flows)[0] == pytest.approx(slope, rel=1e-6)
    of_flows = gradient(internal_rate, 0.1, flows)[1]
    assert [paid for _, paid in of_flows] == pytest.approx(
        [1.0, 1.1 ** (-182 / 365), 1.1 ** (-366 / 365)]
    )
    assert [day for day, _ in of_flows] == [None] * 3


def test_dates_as_keys_and_members():
    def f(x):
        prices = {date(2020, 1, day): x**day for day in range(1, 4)}
        prices[min(prices)] *= 3
        return sum(price * day.day for day, price in prices.items() if day.month == 1)

    assert gradient(f, 2.0) == (pytest.approx(3 + 4 * 2 + 9 * 4),)


def test_the_gradient_by_a_time_is_a_number_per_second():
    def decay(elapsed, rate):
        return rate * elapsed.total_seconds()

    assert gradient(decay, timedelta(minutes=1), 0.5) == (0.5, 60.0)
    assert gradient(lambda m: (m - START) / timedelta(hours=1), START + DAY) == (1 / HOUR,)
    assert gradient(lambda m: float((m - date(2020, 1, 1)).days), date(2020, 2, 1)) == (None,)
