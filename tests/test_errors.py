"""The exception tree drawn in the docstring is the real one."""

from __future__ import annotations

import inspect
import re

import pytest

from oraculo import errors


def drawn() -> dict[str, str]:
    """name → parent, read from the drawing."""
    tree: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^    ([│├└─ ]*)(\w+Error)\b", line)
        if found:
            depth = len(found[1]) // 4
            path = [*path[:depth], found[2]]
            tree[found[2]] = path[-2] if depth else "Exception"
    return tree


def real() -> dict[str, str]:
    return {
        name: one.__bases__[0].__name__
        for name, one in vars(errors).items()
        if inspect.isclass(one) and issubclass(one, Exception)
    }


def test_the_drawing_is_the_tree() -> None:
    assert drawn() == real()


def test_every_error_descends_from_one_root_says_so_and_is_documented() -> None:
    for name in real():
        one = getattr(errors, name)
        assert issubclass(one, errors.OraculoError) and name.endswith("Error") and one.__doc__


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (errors.SettingsError("ORACULO_PORT", "x", "a whole number"), "ORACULO_PORT='x' is not allowed: a"),
        (errors.MissingExtraError("RabbitMQ", "rabbitmq"), "pip install 'oraculo[rabbitmq]'"),
        (errors.DuplicateCorrelationError("correlation_id", "a"), "correlation_id 'a' was already used"),
        (errors.UnknownIdError("ticket", "t"), "no ticket 't'"),
        (errors.WireError("not_json", "not JSON"), "not JSON"),
        (errors.PlanError("no tasks", "coletas"), "no tasks"),
        (errors.WorkError("fora do ar", codigo="http_500", definitivo=True), "fora do ar"),
        (errors.ApiError(404, "Not Found", "no such run"), "404 Not Found: no such run"),
        (errors.ApiError(404, "Not Found"), "404 Not Found"),
    ],
)  # fmt: skip
def test_messages_say_what_happened_and_to_what(error: Exception, text: str) -> None:
    assert text in str(error)


@pytest.mark.parametrize(
    ("unavailable", "caught_as"),
    [
        (errors.StoreUnavailableError, errors.StoreError), (errors.FencedError, errors.StoreError),
        (errors.EngineUnavailableError, errors.StoreError), (errors.BrokerUnavailableError, errors.BrokerError),
        (errors.RegistryUnavailableError, errors.BrokerError),
    ],
)  # fmt: skip
def test_what_is_unavailable_is_also_an_error_of_its_room(
    unavailable: type[Exception], caught_as: type[Exception]
) -> None:
    assert issubclass(unavailable, errors.UnavailableError) and issubclass(unavailable, caught_as)
    assert not issubclass(errors.EngineUnavailableError, errors.StoreUnavailableError)
