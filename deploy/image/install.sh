#!/bin/sh
# install.sh EXTRAS: a virtual environment in /opt/oraculo with the wheel of /wheel and what it needs for these extras,
# every package checked against the hashes of requirements.lock. It has no pip: the image cannot be changed from inside.
set -eu
[ ! -s /run/ca.pem ] || export PIP_CERT=/run/ca.pem
python3 locked.py pyproject.toml requirements.lock --extras "$1" >parts.lock
python3 -m venv --without-pip /opt/oraculo
pip() { /tools/bin/pip --python /opt/oraculo/bin/python "$@"; }
pip install --require-hashes --only-binary :all: -r parts.lock
pip install --no-deps --no-index /wheel/*.whl
pip check
