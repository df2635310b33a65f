"""One orchestration from end to end over the API: handed in, leased by a worker, answered, ended. For `helm test`.

    python end_to_end.py SECONDS

ORACULO_URL, ORACULO_URL_CA and ORACULO_API_KEY say where and with which key. The last line says what came of it; exit
status 0 or 1.
"""

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request

QUEUE_SOURCE = "helm_test"
LEASE_WAIT_S = 2
REQUEST_TIMEOUT_S = 15


def secure():
    """How a server with TLS is known, and what is shown to it."""
    context = ssl.create_default_context(cafile=os.environ.get("ORACULO_URL_CA") or None)
    if os.environ.get("ORACULO_URL_CERT"):
        context.load_cert_chain(os.environ["ORACULO_URL_CERT"], os.environ.get("ORACULO_URL_KEY") or None)
    return context


def call(method, path, body=None):
    """The JSON answer to one request."""
    request = urllib.request.Request(
        os.environ["ORACULO_URL"].rstrip("/") + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {os.environ['ORACULO_API_KEY']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT_S, context=secure()) as answer:
        return json.load(answer)


def answer_orders():
    """Lease what waits for the source of this test, and answer it."""
    lease = {"max": 10, "wait": LEASE_WAIT_S, "worker": "helm-test"}
    for one in call("POST", f"/api/v1/queues/escavador_{QUEUE_SOURCE}/lease", lease)["mensagens"]:
        order = one["mensagem"]
        token = {"token": order["token"]} if "token" in order else {}
        call(
            "POST",
            "/api/v1/results",
            {
                **token,
                "correlation_id": order["correlation_id"],
                "ticket_id": order["ticket_id"],
                "tentativa": order["tentativa"],
                "tipo_evento": "resultado_coleta",
                "payload": {"fonte": QUEUE_SOURCE, "status": "ok", "dados": [{"titulo": "helm test"}], "erros": []},
                "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            },
        )


def main(patience_s):
    """The final status of one orchestration, or the last error when the time is up."""
    until = time.monotonic() + patience_s
    key, last = "", "nothing was answered"
    while time.monotonic() < until:
        try:
            if not key:
                key = call("POST", "/api/v1/orchestrations", {"coletas": [{"fonte": QUEUE_SOURCE}]})["correlation_id"]
            answer_orders()
            last = call("GET", f"/api/v1/orchestrations/{key}")["status"]
            if last in ("concluida", "erro", "timeout", "cancelada"):
                return last
        except (urllib.error.URLError, OSError) as error:
            last = str(error)
            time.sleep(0.5)
    return f"not ended after {patience_s:g} s: {last}"


if __name__ == "__main__":
    outcome = main(float(sys.argv[1]))
    sys.stdout.write(f"orchestration: {outcome}\n")
    sys.exit(0 if outcome == "concluida" else 1)
