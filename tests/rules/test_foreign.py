"""ctypes and addresses of arrays: what is changed through them is refused, in both modes."""

import ctypes
import io
import struct

import numpy as np
import pytest

from morula import NoRuleError, UnsupportedError, gradient, jvp
from tests.mutation import check_mutation

X = np.array([0.7, 1.3, -0.4])
Doubles = ctypes.c_double * 3
Pointer = ctypes.POINTER(ctypes.c_double)


class Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_double), ("b", ctypes.c_double)]


class Shown:
    """What has the memory of an array without being one."""

    def __init__(self, x):
        self.x = x

    @property
    def __array_interface__(self):
        return self.x.__array_interface__


def by_an_item(y):
    Doubles.from_buffer(y)[0] = 3.0


def by_a_slice(y):
    Doubles.from_buffer(y)[0:2] = [1.0, 2.0]


def by_a_field(y):
    Pair.from_buffer(y).a = 3.0


def by_a_value(y):
    ctypes.c_double.from_buffer(y, 8).value = 3.0


def by_a_pointer(y):
    y.ctypes.data_as(Pointer)[0] = 3.0


def by_what_a_pointer_holds(y):
    y.ctypes.data_as(Pointer).contents.value = 3.0


def by_an_address(y):
    ctypes.memset(y.ctypes.data, 0, 8)


def by_an_address_asked_for_before_other_calls(y):
    address = y.ctypes.data
    np.linalg.norm(np.outer(y, y) + np.eye(3), 2)
    ctypes.memset(address, 0, 8)


def by_the_address_of_an_interface(y):
    ctypes.memset(y.__array_interface__["data"][0], 0, 8)


def by_an_address_that_is_cast(y):
    ctypes.cast(y.ctypes.data, Pointer)[0] = 3.0


def by_an_object_at_an_address(y):
    ctypes.c_double.from_address(y.ctypes.data).value = 3.0


def by_a_void_pointer(y):
    ctypes.memset(ctypes.c_void_p(y.ctypes.data), 0, 8)


def by_a_reference(y):
    ctypes.memset(ctypes.byref(Doubles.from_buffer(y)), 0, 8)


def by_the_address_of_what_shows_it(y):
    ctypes.memset(ctypes.addressof(Doubles.from_buffer(y)), 0, 8)


def by_as_ctypes(y):
    np.ctypeslib.as_ctypes(y)[0] = 3.0


def by_an_array_at_a_pointer(y):
    np.ctypeslib.as_array(y.ctypes.data_as(Pointer), (3,))[0] = 3.0


def by_an_interface(y):
    np.asarray(Shown(y))[0] = 3.0


def by_packing(y):
    struct.pack_into("d", y, 0, 3.0)


def by_packing_into_a_memoryview(y):
    struct.pack_into("d", memoryview(y), 8, 3.0)


def by_packing_into_bytes(y):
    struct.pack_into("d", y.view("u1"), 8, 3.0)


def by_reading_a_file(y):
    io.BytesIO(bytes(24)).readinto(memoryview(y).cast("B"))


def by_bytes(y):
    memoryview(y).cast("B")[0:8] = bytes(8)


WRITES = (
    by_an_item, by_a_slice, by_a_field, by_a_value, by_a_pointer, by_what_a_pointer_holds,
    by_an_address, by_an_address_asked_for_before_other_calls, by_the_address_of_an_interface,
    by_an_address_that_is_cast,
    by_an_object_at_an_address, by_a_void_pointer, by_a_reference,
    by_the_address_of_what_shows_it, by_as_ctypes, by_an_array_at_a_pointer, by_an_interface,
    by_packing, by_packing_into_a_memoryview, by_packing_into_bytes, by_reading_a_file, by_bytes,
)  # fmt: skip
REFUSALS = (UnsupportedError, NoRuleError)


@pytest.mark.parametrize("write", WRITES)
def test_what_is_written_to_an_array_behind_its_back_is_refused(write, path):
    def f(x):
        y = x * x
        write(y)
        return (x * y).sum()

    with pytest.raises(REFUSALS, match=r"test_foreign\.py"):
        gradient(f, X.copy())


@pytest.mark.parametrize("write", WRITES)
def test_so_it_is_in_forward_mode(write):
    def f(x):
        y = x * x
        write(y)
        return (x * y).sum()

    with pytest.raises(REFUSALS, match=r"test_foreign\.py"):
        jvp(f, (X.copy(),), (np.ones(3),))


READS = {
    "an item": lambda x: Doubles.from_buffer(x)[0],
    "items": lambda x: sum(Doubles.from_buffer(x)),
    "a pointer": lambda x: x.ctypes.data_as(Pointer)[1],
    "an address": lambda x: ctypes.c_double.from_address(x.ctypes.data).value,
    "a copy": lambda x: np.array(Doubles.from_buffer(x)).sum(),
    "numbers stored": lambda x: Doubles(*x)[1],
    "a number written": lambda x: written(x)[1],
}


def written(x):
    numbers = Doubles()
    numbers[1] = x[0]
    return numbers


@pytest.mark.parametrize("read", READS)
def test_what_is_read_through_them_has_no_derivative(read, path):
    with pytest.raises(NoRuleError, match=r"test_foreign\.py"):
        gradient(lambda x: READS[read](x) * x[1], X.copy())


@pytest.mark.parametrize("read", READS)
def test_so_it_has_none_in_forward_mode(read):
    with pytest.raises(NoRuleError, match=r"test_foreign\.py"):
        jvp(lambda x: READS[read](x) * x[1], (X.copy(),), (np.ones(3),))


def unused(x):
    numbers = Doubles(*x)
    number = ctypes.c_double(float(x[0]))
    number.value = 2.0
    seen = {x.ctypes.data, ctypes.addressof(numbers)}
    ctypes.memset(numbers, 0, 8)
    return (x * x).sum() * len(seen)


def interfaces(x):
    return (x * x).sum() * x.__array_interface__["shape"][0]


def views_by_the_protocol(x):
    v = np.from_dlpack(x)
    w = np.from_dlpack(x, copy=True)
    v[0] = x[1] * x[2]
    return (x * w).sum()


def fields_of_numbers(x):
    z = x + 1j * x[::-1]
    z.setfield(x[1] * x, "f8", 8)
    x.setfield(x[1] * x[2], "f8")
    return (z.real * z.imag * x).sum()


@pytest.mark.parametrize("f", [unused, interfaces, views_by_the_protocol, fields_of_numbers])
def test_what_does_not_matter_or_is_known_is_in_nobodys_way(f, path):
    x = X.copy()
    gradients = check_mutation(f, x)
    assert jvp(f, (X.copy(),), (np.ones(3),))[1] == pytest.approx(gradients[0].sum())
