#!/usr/bin/env bash
# Prepares what the peers need: benchmarks/.venv with the pinned packages, and the servers (tools/servers/install.py: as root
# on a Debian-like system it installs those that are missing, and starts none), and wrk, which asks our server over HTTP.
# What could not be had is listed at the end; run.py skips the rows that lack it.
set -u
cd "$(dirname "$0")" || exit 1
missing=()

if [ ! -x .venv/bin/python ]; then
  "${PYTHON:-python3}" -m venv .venv || { echo "could not create benchmarks/.venv (set PYTHON to a Python 3.11+)"; exit 1; }
fi

uv=../.venv/bin/uv  # of `make .venv/.installed`
[ -x "$uv" ] || uv=$(command -v uv || true)
if [ -n "$uv" ]; then
  install=("$uv" pip install --quiet --python .venv/bin/python)
else
  install=(.venv/bin/python -m pip install --quiet --disable-pip-version-check)
fi

if ! "${install[@]}" -r requirements-peers.txt; then
  echo "installing together failed; trying one by one"
  while read -r requirement; do
    case "$requirement" in ''|'#'*) continue ;; esac
    "${install[@]}" "$requirement" || missing+=("$requirement")
  done < requirements-peers.txt
fi

if ! command -v wrk >/dev/null 2>&1; then
  if ! command -v apt-get >/dev/null 2>&1 || ! { apt-get install --yes --quiet --no-install-recommends -o DPkg::Lock::Timeout=300 wrk >/dev/null 2>&1; }; then
    missing+=("wrk: apt-get install wrk")
  fi
fi

(cd .. && .venv/bin/python -m tools.servers.install --require) || missing+=("servers: see above")

if [ "${#missing[@]}" -gt 0 ]; then
  echo "could not be had:"
  printf '  %s\n' "${missing[@]}"
  exit 1
fi
echo "ready: python benchmarks/run.py --quick"
