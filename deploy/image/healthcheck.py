"""Whether the process in this container answers `/health`: exit status 0, else 1. Needs nothing but Python."""

import os
import sys
import urllib.request

ANSWER_TIMEOUT_S = 4.0

port = os.environ.get("ORACULO_PORT") or "8000"
try:
    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=ANSWER_TIMEOUT_S).close()
except OSError as error:
    sys.exit(f"/health on port {port}: {error}")
