"""Functions told apart by the type of their first argument, whatever the argument says of itself."""

from unittest import mock

from morula import gradient, jvp
from morula.core.dispatch import by_type


@by_type
def kind(x):
    """What it is."""
    return "unknown"


@kind.register
def _(x: float):
    return "float"


class Proxy:
    """An object that pretends to be what it stands for."""

    def __init__(self, inner):
        self.inner = inner

    @property
    def __class__(self):
        return type(self.inner)


def test_what_an_object_pretends_to_be_does_not_count():
    assert kind(1.0) == "float"
    assert kind(Proxy(1.0)) == "unknown"
    assert kind.__name__ == "kind"
    assert kind.__doc__ == "What it is."


def test_proxies_and_mocks_in_differentiated_code(path):
    def by_proxy(x):
        return Proxy(x * x).inner * x

    def by_mock(x):
        service = mock.Mock(return_value=x * x)
        service.rate = x
        return service(3.0) * service.rate

    for f in (by_proxy, by_mock):
        assert gradient(f, 1.5) == (6.75,)
        assert jvp(f, (1.5,), (1.0,)) == (3.375, 6.75)
