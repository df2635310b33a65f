#!/usr/bin/env bash
# Looks at a release of the chart and says of each thing whether it is right: pass, fail or warn. Exit status 1 when anything failed.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=scripts/lib/checks.sh
. "$ROOT/scripts/lib/checks.sh"

NAMESPACE=${NAMESPACE:-neural-hive-orchestration}
RELEASE=${RELEASE:-orchestrator-dynamic}
KAFKA_K8S_NAMESPACE=${KAFKA_K8S_NAMESPACE:-kafka}
TEMPORAL_K8S_NAMESPACE=${TEMPORAL_K8S_NAMESPACE:-temporal}
DRY_RUN=false

usage() {
  cat <<TEXT
usage: $(basename "$0") [--json] [--dry-run]

  --json      one JSON object at the end, on standard output
  --dry-run   list the checks, ask no cluster

Variables: NAMESPACE ($NAMESPACE), RELEASE ($RELEASE), KAFKA_K8S_NAMESPACE ($KAFKA_K8S_NAMESPACE), TEMPORAL_K8S_NAMESPACE ($TEMPORAL_K8S_NAMESPACE)
TEXT
}

while [ $# -gt 0 ]; do
  case $1 in
  --json) JSON=true ;;
  --dry-run) DRY_RUN=true ;;
  -h | --help)
    usage
    exit 0
    ;;
  *) usage_error "unknown option $1 (--help lists them)" ;;
  esac
  shift
done
FULLNAME=$RELEASE
case $RELEASE in *orchestrator-dynamic*) ;; *) FULLNAME=$RELEASE-orchestrator-dynamic ;; esac
SELECTOR=app.kubernetes.io/instance=$RELEASE,app.kubernetes.io/component=api

get() { kubectl get --namespace "$NAMESPACE" --request-timeout=10s "$@" 2>/dev/null; }
ask() { get "$@" || true; } # text, or nothing
variable() { ask configmap "$FULLNAME-config" --output "jsonpath={.data.$1}"; }

deployment() {
  heading "deployment"
  if ! get deployment "$FULLNAME" >/dev/null; then
    fail "deployment" "there is no $FULLNAME in the namespace $NAMESPACE"
    return
  fi
  pass "deployment" "$FULLNAME"
  local wanted ready name phase ready_pod restarts reason
  wanted=$(ask deployment "$FULLNAME" --output 'jsonpath={.spec.replicas}')
  ready=$(ask deployment "$FULLNAME" --output 'jsonpath={.status.readyReplicas}')
  if [ "${ready:-0}" = "${wanted:-0}" ] && [ "${ready:-0}" -gt 0 ]; then
    pass "replicas" "$ready of $wanted ready"
  else
    fail "replicas" "${ready:-0} of ${wanted:-0} ready"
  fi
  while IFS='|' read -r name phase ready_pod restarts reason; do
    [ -n "$name" ] || continue
    if [ "$phase" = Running ] && [ "$ready_pod" = True ]; then
      pass "pod" "$name"
    else
      fail "pod" "$name: $phase${reason:+: $reason}"
    fi
    if [ "${restarts:-0}" -ge 3 ]; then warn "restarts" "$name: $restarts"; fi
  done < <(ask pods --selector "$SELECTOR" --output \
    jsonpath='{range .items[*]}{.metadata.name}{"|"}{.status.phase}{"|"}{.status.conditions[?(@.type=="Ready")].status}{"|"}{.status.containerStatuses[0].restartCount}{"|"}{.status.containerStatuses[0].state.waiting.reason}{"\n"}{end}')
}

service() {
  heading "service"
  if ! get service "$FULLNAME" >/dev/null; then
    fail "service" "there is no $FULLNAME"
    return
  fi
  pass "service" "$FULLNAME, ClusterIP $(ask service "$FULLNAME" --output 'jsonpath={.spec.clusterIP}')"
  local addresses
  addresses=$(ask endpointslices --selector "kubernetes.io/service-name=$FULLNAME" --output 'jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].addresses[0]}' | wc -w)
  if [ "$addresses" -gt 0 ]; then pass "endpoints" "$addresses"; else fail "endpoints" "none is ready"; fi
}

health() { # through the API server, since the image has no curl
  heading "health"
  local path said
  for path in /health /ready; do
    said=$(ask --raw "/api/v1/namespaces/$NAMESPACE/services/http:$FULLNAME:http/proxy$path")
    case $said in
    *'"status":"ok"'*) pass "$path" "ok" ;;
    *'"status":"degraded"'*) warn "$path" "degraded" ;;
    *'"status":'*) fail "$path" "$said" ;;
    *) warn "$path" "no answer through the API server; the probes of the pods ask it too" ;;
    esac
  done
}

servers() {
  heading "servers"
  local topic topics
  if [ "$(variable TEMPORAL_ENABLED)" = true ]; then
    if kubectl get service --namespace "$TEMPORAL_K8S_NAMESPACE" temporal-frontend >/dev/null 2>&1; then
      pass "temporal" "service temporal-frontend"
    else
      warn "temporal" "no service temporal-frontend in the namespace $TEMPORAL_K8S_NAMESPACE"
    fi
    if kubectl logs --namespace "$NAMESPACE" "deployment/$FULLNAME" --container oraculo --tail 500 2>/dev/null | grep -qi temporal; then
      pass "temporal" "the log mentions it"
    else
      warn "temporal" "the log does not mention it"
    fi
  fi
  if [ -n "$(variable KAFKA_BOOTSTRAP_SERVERS)" ]; then
    local group
    group=$(variable KAFKA_CONSUMER_GROUP_ID)
    if kubectl exec --namespace "$KAFKA_K8S_NAMESPACE" "${KAFKA_POD:-kafka-0}" -- kafka-consumer-groups.sh --bootstrap-server localhost:9092 --list 2>/dev/null | grep -q "$group"; then
      pass "consumer group" "$group"
    else
      warn "consumer group" "$group could not be found"
    fi
    topics=$(kubectl get kafkatopics --namespace "$KAFKA_K8S_NAMESPACE" --output 'jsonpath={.items[*].spec.topicName}' 2>/dev/null || true)
    [ -n "$topics" ] || topics=$(kubectl exec --namespace "$KAFKA_K8S_NAMESPACE" "${KAFKA_POD:-kafka-0}" -- kafka-topics.sh --bootstrap-server localhost:9092 --list 2>/dev/null | tr '\n' ' ' || true)
    for topic in plans.consensus execution.tickets orchestration.incidents telemetry.orchestration; do
      case " $topics " in
      *" $topic "*) pass "topic" "$topic" ;;
      *) warn "topic" "$topic could not be found" ;;
      esac
    done
  fi
}

metrics() {
  heading "metrics"
  local said
  said=$(ask --raw "/api/v1/namespaces/$NAMESPACE/services/http:$FULLNAME:metrics/proxy/metrics")
  case $said in
  *orchestration_*) pass "metrics" "orchestration_…" ;;
  '') warn "metrics" "no answer through the API server" ;;
  *) fail "metrics" "nothing that begins with orchestration_" ;;
  esac
  if [ -n "$(ask servicemonitors "$FULLNAME" --output name)" ]; then
    pass "servicemonitor"
  else
    warn "servicemonitor" "none (serviceMonitor.enabled)"
  fi
  if [ "$(ask deployment "$FULLNAME" --output 'jsonpath={.spec.template.metadata.annotations.prometheus\.io/scrape}')" = true ]; then
    pass "scrape annotations"
  else
    warn "scrape annotations" "prometheus.io/scrape is not true"
  fi
}

mesh() {
  heading "mesh"
  case " $(ask pods --selector "$SELECTOR" --output 'jsonpath={.items[*].spec.containers[*].name}') " in
  *" istio-proxy "*) pass "sidecar" ;;
  *) warn "sidecar" "pods have no istio-proxy" ;;
  esac
  if [ -n "$(ask peerauthentications "$FULLNAME" --output name)" ]; then pass "mtls"; else warn "mtls" "no PeerAuthentication"; fi
}

secrets() { # named by pods and missing; the logic is the command's
  heading "doctor"
  command -v oraculo >/dev/null || {
    warn "doctor" "oraculo is not installed here (docs/install.md)"
    return
  }
  local said
  if said=$(oraculo doctor --kubernetes --namespace "$NAMESPACE" --release "$RELEASE" 2>&1); then
    pass "doctor" "oraculo doctor --kubernetes"
  else
    fail "doctor" "$(grep -v '^ ' <<<"$said" | grep -m 1 -E '^(✖|x) ' || tail -n 1 <<<"$said")"
  fi
}

if [ "$DRY_RUN" = true ]; then
  say "would check: deployment, replicas, pods, restarts, service, endpoints, /health, /ready, temporal, consumer group, topics,"
  say "metrics, ServiceMonitor, scrape annotations, sidecar, mTLS, Secrets named by pods"
  exit 0
fi
command -v kubectl >/dev/null || stop "kubectl" "not installed"
kubectl get --raw /readyz --request-timeout=10s >/dev/null 2>&1 || stop "cluster" "it does not answer: kubectl get --raw /readyz"
for check in deployment service health servers metrics mesh secrets; do "$check"; done
summary
