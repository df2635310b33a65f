#!/usr/bin/env bash
# Builds the image, makes the Secret, installs the chart and looks whether it works. Steps and variables are those of the
# original script; questions are asked on a terminal only.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=scripts/lib/checks.sh
. "$ROOT/scripts/lib/checks.sh"

CHART=$ROOT/helm-charts/orchestrator-dynamic
NAMESPACE=${NAMESPACE:-neural-hive-orchestration}
ENVIRONMENT=${ENVIRONMENT:-development}
VERSION=${VERSION:-$(sed -n 's/^appVersion: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$CHART/Chart.yaml")}
REGISTRY=${REGISTRY:-localhost:5000}
RELEASE=${RELEASE:-orchestrator-dynamic}
VALUES=${VALUES:-$CHART/values.yaml}
TIMEOUT=${TIMEOUT:-10m}
BUILDER=${BUILDER:-docker}
SECRET=${SECRET:-orchestrator-secrets}
DRY_RUN=false
SKIP_BUILD=${SKIP_BUILD:-false}
EXISTING_SECRET=""
YES=${YES:-false}
IMAGE=""

usage() {
  cat <<TEXT
usage: $(basename "$0") [options]

  --dry-run                 say what would be done, render the chart, change nothing
  --skip-build              the image is there already
  --builder NAME            docker, podman or buildah (docker)
  --image IMAGE[:TAG][@DIGEST]
                            another image than REGISTRY/oraculo:VERSION; implies --skip-build
  --existing-secret NAME    use this Secret, ask for none
  --values FILE             values of the chart (values.yaml)
  --timeout TIME            how long pods may take (10m)
  --yes                     go on where the original would ask
  --json                    one JSON object at the end, on standard output

Variables: NAMESPACE ($NAMESPACE), ENVIRONMENT ($ENVIRONMENT), VERSION ($VERSION), REGISTRY ($REGISTRY), RELEASE ($RELEASE);
of the Secret: POSTGRES_USER, POSTGRES_PASSWORD, MONGODB_URI, REDIS_PASSWORD, ORACULO_API_KEY (made when missing), REPLACE_SECRET=true.
TEXT
}

while [ $# -gt 0 ]; do
  case $1 in
  --dry-run) DRY_RUN=true ;;
  --skip-build) SKIP_BUILD=true ;;
  --yes) YES=true ;;
  --json) JSON=true ;;
  --builder | --image | --existing-secret | --values | --timeout)
    [ $# -ge 2 ] || usage_error "$1 needs a value"
    case $1 in
    --builder) BUILDER=$2 ;;
    --image) IMAGE=$2 SKIP_BUILD=true ;;
    --existing-secret) EXISTING_SECRET=$2 ;;
    --values) VALUES=$2 ;;
    --timeout) TIMEOUT=$2 ;;
    esac
    shift
    ;;
  -h | --help)
    usage
    exit 0
    ;;
  *) usage_error "unknown option $1 (--help lists them)" ;;
  esac
  shift
done
case $BUILDER in docker | podman | buildah) ;; *) usage_error "--builder is $BUILDER: docker, podman or buildah" ;; esac
[ -r "$VALUES" ] || usage_error "--values: $VALUES cannot be read"
IMAGE=${IMAGE:-$REGISTRY/oraculo:$VERSION}
REPOSITORY=${IMAGE%@*}
TAG=$VERSION
DIGEST=""
[ "$REPOSITORY" = "$IMAGE" ] || DIGEST=${IMAGE##*@}
case ${REPOSITORY##*/} in *:*) TAG=${REPOSITORY##*:} REPOSITORY=${REPOSITORY%:*} ;; esac # a colon before that is a port
FULLNAME=$RELEASE
case $RELEASE in *orchestrator-dynamic*) ;; *) FULLNAME=$RELEASE-orchestrator-dynamic ;; esac

run() { # a command that changes something
  if [ "$DRY_RUN" = true ]; then
    say "would run: $*"
  else
    "$@" >&2
  fi
}

confirmed() { # question; without a terminal only --yes is a yes
  if [ "$YES" = true ]; then return 0; fi
  on_terminal || return 1
  local answer
  read -r -p "$1 [y/N] " answer
  [ "$answer" = y ] || [ "$answer" = Y ]
}

refusal() { # what Helm said, in one line: faults that the schema found, else the error
  local faults
  faults=$(sed -n "s/^ *- \(at '.*\)/\1/p" <<<"$1" | grep -v ': validation failed$' | paste -s -d ';' || true)
  faults=${faults:-$(grep -m 1 '^Error' <<<"$1" || tail -n 1 <<<"$1")}
  printf '%s' "${faults#Error: }"
}

rendered_variable() { sed -n "s/^  $1: \"\(.*\)\"$/\1/p" <<<"$RENDERED" | head -n 1; }

prerequisites() {
  heading "1 prerequisites"
  local tool
  for tool in kubectl helm; do
    command -v "$tool" >/dev/null || stop "$tool" "not installed"
  done
  if [ "$SKIP_BUILD" = false ]; then
    command -v "$BUILDER" >/dev/null || stop "$BUILDER" "not installed; --builder names another, --skip-build needs none"
  fi
  kubectl get --raw /readyz >/dev/null 2>&1 || stop "cluster" "it does not answer: kubectl get --raw /readyz"
  pass "cluster" "$(kubectl config current-context)"
  if ! kubectl get namespace "$NAMESPACE" >/dev/null 2>&1; then
    run kubectl create namespace "$NAMESPACE"
  fi
  pass "namespace" "$NAMESPACE"
  if ! RENDERED=$(helm template "$RELEASE" "$CHART" --namespace "$NAMESPACE" --values "$VALUES" --show-only templates/configmap.yaml 2>&1); then
    stop "values" "$(refusal "$RENDERED")"
  fi
  servers
}

servers() { # only those that the values name
  if [ "$(rendered_variable TEMPORAL_ENABLED)" = true ]; then
    if kubectl get service --namespace "${TEMPORAL_K8S_NAMESPACE:-temporal}" temporal-frontend >/dev/null 2>&1; then
      pass "temporal" "service temporal-frontend"
    elif confirmed "There is no service temporal-frontend in the namespace ${TEMPORAL_K8S_NAMESPACE:-temporal}. Go on?"; then
      warn "temporal" "no service temporal-frontend"
    else
      stop "temporal" "no service temporal-frontend in the namespace ${TEMPORAL_K8S_NAMESPACE:-temporal}; --yes goes on without it"
    fi
  fi
  if [ -n "$(rendered_variable KAFKA_BOOTSTRAP_SERVERS)" ]; then
    local kafka=${KAFKA_K8S_NAMESPACE:-kafka} topic topics
    [ -n "$(kubectl get pods --namespace "$kafka" --output name 2>/dev/null)" ] || stop "kafka" "no pods in the namespace $kafka"
    pass "kafka" "namespace $kafka"
    topics=$(kubectl get kafkatopics --namespace "$kafka" --output jsonpath='{.items[*].spec.topicName}' 2>/dev/null || true)
    for topic in plans.consensus execution.tickets orchestration.incidents telemetry.orchestration; do
      case " $topics " in
      *" $topic "*) pass "topic" "$topic" ;;
      *) warn "topic" "$topic is not among the KafkaTopics; the chart's job makes it" ;;
      esac
    done
    if [ -z "$(kubectl get pods --namespace "${MONGODB_K8S_NAMESPACE:-mongodb-cluster}" --output name 2>/dev/null)" ]; then
      warn "mongodb" "no pods in the namespace ${MONGODB_K8S_NAMESPACE:-mongodb-cluster}: no audit without MONGODB_URI"
    else
      pass "mongodb"
    fi
  fi
}

image() {
  heading "2 image $REPOSITORY:$TAG"
  if [ "$SKIP_BUILD" = true ]; then
    pass "image" "not built (--skip-build)"
    return
  fi
  local build=("$BUILDER" build) revision
  [ "$BUILDER" != buildah ] || build=(buildah bud)
  revision=$(git -C "$ROOT" rev-parse HEAD 2>/dev/null || echo unknown)
  run "${build[@]}" --build-arg "VERSION=$VERSION" --build-arg "REVISION=$revision" \
    --build-arg "CREATED=$(date -u +%Y-%m-%dT%H:%M:%SZ)" --label "git.commit=$revision" \
    --label "build.date=$(date -u +%Y-%m-%dT%H:%M:%SZ)" --tag "$REPOSITORY:$TAG" "$ROOT" || stop "image" "the build failed"
  pass "image" "built"
  [ "$ENVIRONMENT" != development ] || return 0
  run "$BUILDER" push "$REPOSITORY:$TAG" || stop "push" "$REPOSITORY:$TAG"
  pass "push" "$REPOSITORY:$TAG"
  if command -v trivy >/dev/null; then
    run trivy image --exit-code 0 --severity HIGH,CRITICAL "$REPOSITORY:$TAG"
  else
    warn "scan" "trivy is not installed"
  fi
}

asked() { # variable prompt: the value of the variable, else the answer of the person at the terminal
  local value=${!1:-}
  if [ -z "$value" ] && on_terminal; then
    read -r -s -p "$2: " value
    say ""
  fi
  printf '%s' "$value"
}

secret() {
  heading "3 secret"
  if [ -n "$EXISTING_SECRET" ]; then
    SECRET=$EXISTING_SECRET
    kubectl get secret --namespace "$NAMESPACE" "$SECRET" >/dev/null 2>&1 ||
      stop "secret" "there is no Secret $SECRET in the namespace $NAMESPACE (--existing-secret)"
    pass "secret" "$SECRET, as it is"
    return
  fi
  if [ -z "$(rendered_variable POSTGRES_HOST)" ]; then
    SECRET=""
    pass "secret" "the chart makes one: no server of these values needs a password"
    return
  fi
  if kubectl get secret --namespace "$NAMESPACE" "$SECRET" >/dev/null 2>&1; then
    if [ "${REPLACE_SECRET:-false}" != true ] && ! { on_terminal && confirmed "The Secret $SECRET exists. Replace it?"; }; then
      pass "secret" "$SECRET, kept"
      return
    fi
  fi
  local user password uri redis key
  user=$(asked POSTGRES_USER "PostgreSQL user")
  password=$(asked POSTGRES_PASSWORD "PostgreSQL password")
  [ -n "$password" ] || stop "secret" "POSTGRES_PASSWORD is not set, and there is no terminal to ask on; or name a Secret with --existing-secret"
  uri=$(asked MONGODB_URI "MongoDB URI (empty: no audit)")
  redis=$(asked REDIS_PASSWORD "Redis password (empty: none)")
  key=${ORACULO_API_KEY:-$(head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n')}
  if [ "$DRY_RUN" = true ]; then
    say "would make the Secret $SECRET: postgres-user, postgres-password, mongodb-uri, redis-password, api-key"
    pass "secret" "$SECRET"
    return
  fi
  { # through standard input: arguments can be seen by everybody on this machine
    printf 'apiVersion: v1\nkind: Secret\nmetadata: {name: "%s"}\ntype: Opaque\ndata:\n' "$SECRET"
    entry postgres-user "${user:-oraculo}"
    entry postgres-password "$password"
    entry mongodb-uri "$uri"
    entry redis-password "$redis"
    entry api-key "$key"
  } | kubectl apply --namespace "$NAMESPACE" --filename - >&2 || stop "secret" "$SECRET could not be made"
  pass "secret" "$SECRET"
}

entry() { # key value; nothing for an empty value
  [ -z "$2" ] || printf '  %s: "%s"\n' "$1" "$(printf '%s' "$2" | base64 | tr -d '\n')"
}

chart() {
  heading "4 chart"
  local said options=(--namespace "$NAMESPACE" --values "$VALUES" --set "image.repository=$REPOSITORY"
    --set-string "image.tag=$TAG" --set "config.environment=$ENVIRONMENT")
  [ -z "$DIGEST" ] || options+=(--set-string "image.digest=$DIGEST")
  [ "$ENVIRONMENT" != development ] || options+=(--set image.pullPolicy=IfNotPresent)
  if [ -n "$SECRET" ]; then
    options+=(--set "secrets.existingSecret=$SECRET")
    local keys pair
    # shellcheck disable=SC2016 # a template of kubectl, not of the shell
    keys=$(kubectl get secret --namespace "$NAMESPACE" "$SECRET" --output go-template='{{range $key, $value := .data}}{{$key}} {{end}}' 2>/dev/null || true)
    [ -n "$keys" ] || keys="postgres-user postgres-password mongodb-uri redis-password api-key" # a dry run makes none
    for pair in postgresUser=postgres-user postgresPassword=postgres-password mongodbUri=mongodb-uri redisPassword=redis-password apiKey=api-key; do
      case " $keys " in *" ${pair#*=} "*) options+=(--set "secrets.keys.$pair") ;; esac
    done
  fi
  if ! said=$(helm lint "$CHART" --values "$VALUES" 2>&1); then
    stop "lint" "$(grep -m 1 '\[ERROR\]' <<<"$said" || echo "$said")"
  fi
  pass "lint"
  if [ "$DRY_RUN" = true ]; then
    said=$(helm template "$RELEASE" "$CHART" "${options[@]}" 2>&1) || stop "render" "$(refusal "$said")"
    say "would run: helm upgrade --install $RELEASE $CHART ${options[*]} --wait --timeout $TIMEOUT"
    pass "render" "$(grep -c '^kind: ' <<<"$said") objects"
    return
  fi
  if ! said=$(helm upgrade --install "$RELEASE" "$CHART" --create-namespace "${options[@]}" --wait --timeout "$TIMEOUT" 2>&1); then
    fail "helm" "$(refusal "$said")"
    diagnosis
    summary || true
    exit 1
  fi
  pass "helm" "$RELEASE, revision $(helm history --namespace "$NAMESPACE" "$RELEASE" --max 1 --output json | sed -n 's/.*"revision":\([0-9]*\).*/\1/p')"
  said=$(kubectl rollout status --namespace "$NAMESPACE" "deployment/$FULLNAME" --timeout 60s 2>&1) || stop "rollout" "$(tail -n 1 <<<"$said")"
  pass "rollout" "deployment/$FULLNAME"
}

diagnosis() { # why pods are not ready
  kubectl get pods --namespace "$NAMESPACE" --selector "app.kubernetes.io/instance=$RELEASE" --output \
    jsonpath='{range .items[*]}{.metadata.name}{"\t"}{.status.phase}{"\t"}{range .status.containerStatuses[*]}{.state.waiting.reason}{" "}{.state.waiting.message}{end}{"\n"}{end}' 2>/dev/null |
    while IFS=$'\t' read -r name phase reason; do say "  pod $name: $phase $reason"; done
}

smoke() {
  heading "5 smoke test"
  local said
  kubectl wait --namespace "$NAMESPACE" --for=condition=Ready pods --selector \
    "app.kubernetes.io/instance=$RELEASE,app.kubernetes.io/component=api" --timeout "${READY_TIMEOUT:-300s}" >&2 ||
    stop "pods" "not ready within ${READY_TIMEOUT:-300s}"
  pass "pods" "ready: /health and /ready answer the probes"
  said=$(kubectl exec --namespace "$NAMESPACE" "deployment/$FULLNAME" --container oraculo -- oraculo doctor --json 2>/dev/null || true)
  case $said in
  '{"ok":true'*) pass "doctor" "everything is in order" ;;
  '{"ok":false'*) fail "doctor" "kubectl -n $NAMESPACE exec deployment/$FULLNAME -- oraculo doctor" ;;
  *) warn "doctor" "no command could be run in a pod" ;;
  esac
  said=$(kubectl get --raw "/api/v1/namespaces/$NAMESPACE/services/http:$FULLNAME:metrics/proxy/metrics" 2>/dev/null || true)
  case $said in
  *orchestration_*) pass "metrics" "orchestration_…" ;;
  *) warn "metrics" "/metrics could not be read through the API server" ;;
  esac
  kubectl logs --namespace "$NAMESPACE" "deployment/$FULLNAME" --container oraculo --tail 50 >&2 2>/dev/null || warn "logs" "could not be read"
}

next_steps() {
  heading "6 next"
  say "  kubectl -n $NAMESPACE get pods -l app.kubernetes.io/instance=$RELEASE"
  say "  kubectl -n $NAMESPACE logs -l app.kubernetes.io/name=orchestrator-dynamic --tail 100"
  say "  kubectl -n $NAMESPACE port-forward service/$FULLNAME 8000:8000"
  say "  NAMESPACE=$NAMESPACE $ROOT/scripts/validation/validate-orchestrator-dynamic.sh"
  say "  NAMESPACE=$NAMESPACE $ROOT/tests/phase2-orchestrator-test.sh"
}

prerequisites
image
secret
chart
if [ "$DRY_RUN" = false ]; then
  smoke
  next_steps
fi
summary
