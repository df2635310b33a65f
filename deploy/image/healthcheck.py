"""Whether the process in this container answers `/health`: exit status 0, else 1. Needs nothing but Python."""

import os
import ssl
import sys
import urllib.request

ANSWER_TIMEOUT_S = 4.0

port = os.environ.get("ORACULO_PORT") or "8000"
scheme, context = "http", None
if os.environ.get("ORACULO_TLS_CERT"):  # of this container: whose certificate it is need not be asked
    scheme, context = "https", ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if os.environ.get("ORACULO_URL_CERT"):  # shown where ORACULO_TLS_CLIENT_CA asks for one
        context.load_cert_chain(os.environ["ORACULO_URL_CERT"], os.environ.get("ORACULO_URL_KEY") or None)
try:
    urllib.request.urlopen(f"{scheme}://127.0.0.1:{port}/health", timeout=ANSWER_TIMEOUT_S, context=context).close()
except OSError as error:
    sys.exit(f"/health on port {port}: {error}")
