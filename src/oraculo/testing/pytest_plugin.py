"""The pytest plugin of Oráculo: two options and the fixture `oraculo_check`. Costs nothing where they are not used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from oraculo.testing.seeds import SeedsReport


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("oraculo", "Oráculo")
    group.addoption("--oraculo-seeds", type=int, default=None, metavar="N", help="worlds that oraculo_check runs")
    group.addoption("--oraculo-seed", type=int, default=None, metavar="SEED", help="the one world to run again")


class SeedsCheck:
    """The same as `oraculo.testing.check`; the options of the command line say which seeds."""

    def __init__(self, config: pytest.Config) -> None:
        self._one = config.getoption("--oraculo-seed")
        self._many = config.getoption("--oraculo-seeds")

    def __call__(self, *arguments: Any, **options: Any) -> SeedsReport:
        """Run the worlds; print what came of them."""
        from oraculo.testing import check

        if self._one is not None:
            options["seeds"] = [self._one]
        elif self._many is not None:
            options["seeds"] = self._many
        report: SeedsReport = check(*arguments, **options)
        print(f"oraculo_check: {report}")  # noqa: T201  shown by -rP and for failures only
        return report


@pytest.fixture
def oraculo_check(pytestconfig: pytest.Config) -> SeedsCheck:
    """Run a plan with the worker functions of this project in many worlds full of faults: `oraculo.testing.check`."""
    return SeedsCheck(pytestconfig)
