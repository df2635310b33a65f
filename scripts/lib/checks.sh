# shellcheck shell=bash
# Checks that go on after a failure, and one summary of them: lines for people on standard error, with --json one object on
# standard output. Sourced by the scripts beside it.

JSON=${JSON:-false}
RESULTS=() # status, name and detail of each check, separated by a tab
FAILED=0

say() { printf '%s\n' "$*" >&2; }

heading() { say "== $*"; }

record() { # status name detail
  RESULTS+=("$1"$'\t'"$2"$'\t'"$3")
  say "[$1] $2${3:+: $3}"
}

pass() { record pass "$1" "${2:-}"; }
warn() { record warn "$1" "${2:-}"; }
fail() {
  FAILED=$((FAILED + 1))
  record fail "$1" "${2:-}"
}

json_text() { # a JSON string
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  text=${text//$'\n'/\\n}
  text=${text//$'\t'/\\t}
  printf '"%s"' "${text//[$'\001'-$'\037']/ }"
}

summary() { # prints the counts; the exit status is 1 when a check failed
  local counts=([0]=0 [1]=0 [2]=0) list="" result status name detail
  for result in "${RESULTS[@]}"; do
    IFS=$'\t' read -r status name detail <<<"$result"
    case $status in
    pass) counts[0]=$((counts[0] + 1)) ;;
    warn) counts[1]=$((counts[1] + 1)) ;;
    fail) counts[2]=$((counts[2] + 1)) ;;
    esac
    list+="${list:+,}{\"status\":\"$status\",\"name\":$(json_text "$name"),\"detail\":$(json_text "$detail")}"
  done
  say "passed: ${counts[0]}, warnings: ${counts[1]}, failed: ${counts[2]}"
  if [ "$JSON" = true ]; then
    printf '{"ok":%s,"passed":%d,"warnings":%d,"failed":%d,"checks":[%s]}\n' \
      "$([ "$FAILED" = 0 ] && echo true || echo false)" "${counts[0]}" "${counts[1]}" "${counts[2]}" "$list"
  fi
  [ "$FAILED" = 0 ]
}

stop() { # a failure after which nothing else makes sense
  fail "$1" "${2:-}"
  summary || true
  exit 1
}

usage_error() {
  say "$(basename "$0"): $*"
  exit 2
}

on_terminal() { [ -t 0 ] && [ -t 2 ]; }
