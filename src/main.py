"""Start the orchestrator as the founding documents print it, from a clone: `python -m src.main` is `oraculo up`.

It is no part of the package; options are those of `oraculo up`.
"""

from __future__ import annotations

import sys

from oraculo.__main__ import run

if __name__ == "__main__":
    sys.argv[1:1] = ["up"]
    run()
