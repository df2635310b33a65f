"""`python -m tools.cel_cases`."""

import sys

from tools.cel_cases import NoCasesError, fetch

try:
    print(fetch())  # noqa: T201
except NoCasesError as error:
    sys.exit(str(error))
