#!/usr/bin/env bash
# Fluxo C from end to end on a running release: a plan with its decision goes to plans.consensus, and what comes of it is looked for in
# the API, on the topics and in MongoDB. What it made and saw is kept in a folder.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/lib/checks.sh
. "$ROOT/scripts/lib/checks.sh"

NAMESPACE=${NAMESPACE:-neural-hive-orchestration}
RELEASE=${RELEASE:-orchestrator-dynamic}
KAFKA_K8S_NAMESPACE=${KAFKA_K8S_NAMESPACE:-kafka}
KAFKA_POD=${KAFKA_POD:-kafka-0}
KAFKA_CONSENSUS_TOPIC=${KAFKA_CONSENSUS_TOPIC:-plans.consensus}
KAFKA_TICKETS_TOPIC=${KAFKA_TICKETS_TOPIC:-execution.tickets}
KAFKA_TELEMETRY_TOPIC=${KAFKA_TELEMETRY_TOPIC:-telemetry.orchestration}
MONGODB_K8S_NAMESPACE=${MONGODB_K8S_NAMESPACE:-mongodb-cluster}
MONGODB_POD=${MONGODB_POD:-mongodb-0}
MONGODB_DATABASE=${MONGODB_DATABASE:-neural_hive_orchestration}
WAIT_SECONDS=${WAIT_SECONDS:-60}
VIA=${VIA:-kafka}
DRY_RUN=false
FOLDER=${ARTIFACTS:-}
FORWARD=""

usage() {
  cat <<TEXT
usage: $(basename "$0") [options]

  --via kafka|api   how the decision is handed in (kafka: by the console producer in the pod $KAFKA_POD)
  --artifacts DIR   where plan, decision and answers are kept (a new folder in the system's folder of temporary files)
  --dry-run         write plan and decision, hand in nothing
  --json            one JSON object at the end, on standard output

Variables: NAMESPACE, RELEASE, KAFKA_K8S_NAMESPACE, KAFKA_POD, KAFKA_*_TOPIC, MONGODB_K8S_NAMESPACE, MONGODB_POD, MONGODB_DATABASE,
WAIT_SECONDS ($WAIT_SECONDS); ORACULO_URL and ORACULO_API_KEY, when the API is reached without the cluster.
TEXT
}

while [ $# -gt 0 ]; do
  case $1 in
  --json) JSON=true ;;
  --dry-run) DRY_RUN=true ;;
  --via | --artifacts)
    [ $# -ge 2 ] || usage_error "$1 needs a value"
    case $1 in --via) VIA=$2 ;; --artifacts) FOLDER=$2 ;; esac
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
case $VIA in kafka | api) ;; *) usage_error "--via is $VIA: kafka or api" ;; esac
FULLNAME=$RELEASE
case $RELEASE in *orchestrator-dynamic*) ;; *) FULLNAME=$RELEASE-orchestrator-dynamic ;; esac
FOLDER=${FOLDER:-$(mktemp -d "${TMPDIR:-/tmp}/phase2-orchestrator-XXXXXX")}
mkdir -p "$FOLDER"
NUMBER=$(date +%s)-$$
PLAN_ID=phase2-plan-$NUMBER
WORKFLOW_ID=orch-$PLAN_ID

leave() { if [ -n "$FORWARD" ]; then kill "$FORWARD" 2>/dev/null || true; fi; }
trap leave EXIT

tools() {
  local tool wanted=(jq base64)
  [ "$DRY_RUN" = true ] || wanted+=(curl)
  if [ "$DRY_RUN" = false ] && { [ -z "${ORACULO_URL:-}" ] || [ "$VIA" = kafka ]; }; then wanted+=(kubectl); fi
  for tool in "${wanted[@]}"; do command -v "$tool" >/dev/null || stop "$tool" "not installed"; done
}

documents() {
  heading "plan and decision"
  jq -n --arg id "$PLAN_ID" --arg number "$NUMBER" '{
    plan_id: $id, intent_id: "phase2-intent-\($number)", correlation_id: "phase2-\($number)", version: "1.0.0",
    risk_score: 0.4, risk_band: "medium", execution_order: ["build", "test", "deploy"],
    tasks: [
      {task_id: "build", task_type: "BUILD", description: "build", estimated_duration_ms: 30000},
      {task_id: "test", task_type: "TEST", description: "test", dependencies: ["build"], estimated_duration_ms: 30000},
      {task_id: "deploy", task_type: "DEPLOY", description: "deploy", dependencies: ["test"], estimated_duration_ms: 30000}
    ]}' >"$FOLDER/plan.json"
  jq -c --arg number "$NUMBER" '{
    decision_id: "phase2-decision-\($number)", plan_id, intent_id, correlation_id, final_decision: "approve",
    requires_human_review: false, cognitive_plan: .}' "$FOLDER/plan.json" >"$FOLDER/decision.json"
  pass "documents" "$FOLDER"
}

reach() {
  if [ -z "${ORACULO_URL:-}" ]; then
    local port=${LOCAL_PORT:-18000}
    kubectl port-forward --namespace "$NAMESPACE" "service/$FULLNAME" "$port:http" >"$FOLDER/port-forward.log" 2>&1 &
    FORWARD=$!
    ORACULO_URL=http://127.0.0.1:$port
    ORACULO_API_KEY=${ORACULO_API_KEY:-$(kubectl get secret --namespace "$NAMESPACE" "${SECRET:-orchestrator-secrets}" --output 'jsonpath={.data.api-key}' 2>/dev/null | base64 -d || true)}
  fi
  local tries=0
  until curl --silent --fail --output /dev/null "$ORACULO_URL/health"; do
    tries=$((tries + 1))
    [ "$tries" -lt 20 ] || stop "api" "$ORACULO_URL/health does not answer"
    sleep 0.5
  done
  pass "api" "$ORACULO_URL"
}

call() { # curl with the key on standard input, where no other user of this machine sees it
  curl --silent --config - "$@" <<<"header = \"Authorization: Bearer ${ORACULO_API_KEY:-}\""
}

hand_in() {
  heading "hand in"
  if [ "$VIA" = kafka ]; then
    kubectl exec --stdin --namespace "$KAFKA_K8S_NAMESPACE" "$KAFKA_POD" -- kafka-console-producer.sh --bootstrap-server localhost:9092 \
      --topic "$KAFKA_CONSENSUS_TOPIC" <"$FOLDER/decision.json" || stop "produce" "$KAFKA_CONSENSUS_TOPIC"
    pass "produce" "$KAFKA_CONSENSUS_TOPIC"
  else
    call --output "$FOLDER/accepted.json" --write-out '%{http_code}' --request POST --header 'Content-Type: application/json' \
      --data-binary "@$FOLDER/decision.json" "$ORACULO_URL/api/v1/plans" >"$FOLDER/status.txt"
    case $(cat "$FOLDER/status.txt") in
    200 | 201 | 202) pass "produce" "POST /api/v1/plans" ;;
    *) stop "produce" "POST /api/v1/plans answers $(cat "$FOLDER/status.txt"): $(head -c 200 "$FOLDER/accepted.json")" ;;
    esac
  fi
}

workflow() {
  heading "workflow and tickets"
  local until=$((SECONDS + WAIT_SECONDS)) field
  while [ "$SECONDS" -lt "$until" ]; do
    call "$ORACULO_URL/api/v1/workflows/$WORKFLOW_ID" >"$FOLDER/workflow.json" || true
    if jq -e --arg id "$WORKFLOW_ID" '.workflow_id == $id' "$FOLDER/workflow.json" >/dev/null 2>&1; then break; fi
    sleep 1
  done
  if jq -e '.workflow_id' "$FOLDER/workflow.json" >/dev/null 2>&1; then
    pass "workflow" "$WORKFLOW_ID: $(jq -r '.status // "started"' "$FOLDER/workflow.json")"
  else
    fail "workflow" "$WORKFLOW_ID was not started within $WAIT_SECONDS s"
    return
  fi
  call "$ORACULO_URL/api/v1/tickets/by-plan/$PLAN_ID" >"$FOLDER/tickets.json" || true
  if [ "$(jq '.tickets | length' "$FOLDER/tickets.json" 2>/dev/null || echo 0)" = 3 ]; then
    pass "tickets" "3"
  else
    fail "tickets" "$(jq -c '.tickets | length' "$FOLDER/tickets.json" 2>/dev/null || echo none) instead of 3"
    return
  fi
  for field in ticket_id status sla qos; do
    if jq -e --arg field "$field" 'all(.tickets[]; has($field) and .[$field] != null)' "$FOLDER/tickets.json" >/dev/null; then
      pass "tickets" "every one has $field"
    else
      fail "tickets" "one has no $field"
    fi
  done
}

topics() { # Avro or JSON: the id of the plan is readable in both
  [ "$VIA" = kafka ] || return 0
  heading "topics"
  local topic
  for topic in "$KAFKA_TICKETS_TOPIC" "$KAFKA_TELEMETRY_TOPIC"; do
    kubectl exec --namespace "$KAFKA_K8S_NAMESPACE" "$KAFKA_POD" -- kafka-console-consumer.sh --bootstrap-server localhost:9092 --topic "$topic" \
      --from-beginning --timeout-ms 10000 >"$FOLDER/$topic.bin" 2>/dev/null || true
    if grep -aq "$PLAN_ID" "$FOLDER/$topic.bin"; then
      pass "topic" "$topic"
    elif [ "$topic" = "$KAFKA_TELEMETRY_TOPIC" ]; then
      warn "topic" "$topic: nothing of $PLAN_ID yet; its frame comes when the plan has ended"
    else
      fail "topic" "$topic: nothing of $PLAN_ID"
    fi
  done
}

audit() {
  [ "$VIA" = kafka ] || return 0
  heading "audit"
  local query="const d = db.getSiblingDB('$MONGODB_DATABASE'); print(d.execution_tickets.countDocuments({plan_id: '$PLAN_ID'}))" count
  count=$(kubectl exec --namespace "$MONGODB_K8S_NAMESPACE" "$MONGODB_POD" -- mongosh --quiet --eval "$query" 2>/dev/null || true)
  case $count in
  '') warn "mongodb" "it could not be asked" ;;
  0) fail "mongodb" "no ticket of $PLAN_ID in $MONGODB_DATABASE.execution_tickets" ;;
  *) pass "mongodb" "$count tickets" ;;
  esac
}

tools
documents
if [ "$DRY_RUN" = false ]; then
  reach
  hand_in
  workflow
  topics
  audit
fi
summary
