#!/bin/sh
# Writes .env beside compose.yaml with a random value for every password. An existing .env is never touched.
set -eu
cd "$(dirname "$0")/../.."
if [ -e .env ]; then
  echo "init-env.sh: .env exists already; remove it to get new passwords" >&2
  exit 1
fi
umask 077
secret() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
while IFS= read -r line; do
  case $line in
    *_PASSWORD= | ORACULO_API_KEY=) printf '%s%s\n' "$line" "$(secret)" ;;
    *) printf '%s\n' "$line" ;;
  esac
done <.env.example >.env.part
mv .env.part .env
echo "init-env.sh: .env written; the key of the API is ORACULO_API_KEY in it"
