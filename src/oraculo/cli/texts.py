"""What the command line says, in English and in Portuguese. LC_ALL, LC_MESSAGES or LANG choose; English otherwise."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from oraculo.cli.texts_dev import DEV_TEXTS
from oraculo.cli.texts_keys import KEY_TEXTS
from oraculo.cli.texts_operation import OPERATION_TEXTS
from oraculo.cli.texts_plan import PLAN_TEXTS
from oraculo.cli.texts_policy import POLICY_TEXTS
from oraculo.cli.texts_terminal import TERMINAL_TEXTS
from oraculo.cli.texts_tickets import TICKET_TEXTS
from oraculo.cli.texts_waits import WAIT_TEXTS
from oraculo.cli.texts_workers import WORKER_TEXTS

if TYPE_CHECKING:
    from oraculo.core.sentences import Language
    from oraculo.plans.words import Words

_TEXTS: dict[str, tuple[str, str]] = {
    "app": (
        "Broker-native orchestration of collectors and executors: fan-out, fan-in, every result counted once.",
        "Orquestração de escavadores e executadores: fan-out, fan-in, cada resultado contado uma única vez.",
    ),
    # commands
    "up": (
        "Run the orchestrator: API, engine and dashboard in one process.",
        "Sobe o orquestrador: API, motor e painel em um processo.",
    ),
    "worker": (
        "Run the functions of a Worker; orders come from ORACULO_BROKER, or over HTTP from --url.",
        "Roda as funções de um Worker; as ordens vêm de ORACULO_BROKER, ou por HTTP de --url.",
    ),
    "ls": ("List orchestrations, newest first.", "Lista as orquestrações, da mais nova à mais antiga."),
    "show": ("Show one orchestration and its tickets.", "Mostra uma orquestração e seus tickets."),
    "watch": (
        "Follow an orchestration until it ends. Exit status 0 when it went through, 1 when it failed.",
        "Acompanha uma orquestração até o fim. Código 0 quando deu certo, 1 quando falhou.",
    ),
    "cancel": (
        "Cancel an orchestration and its open tickets.",
        "Cancela uma orquestração e seus tickets abertos.",
    ),
    "dlq": ("Messages that could not be handled.", "Mensagens que não puderam ser tratadas."),
    "dlq.ls": ("List dead letters, newest first.", "Lista as mensagens mortas, da mais nova à mais antiga."),
    "dlq.show": ("Show one dead letter with its bytes.", "Mostra uma mensagem morta com seus bytes."),
    "dlq.requeue": ("Hand dead letters in again, as they came.", "Reenvia mensagens mortas como vieram."),
    "dlq.discard": ("Remove dead letters for good.", "Remove mensagens mortas de vez."),
    "events": (
        "What happened to the system itself, newest first: refusals, failovers, discards.",
        "O que houve com o próprio sistema, do mais novo ao mais antigo: recusas, trocas de broker, descartes.",
    ),
    "replicas": (
        "The processes that share the database: who lives, and until when.",
        "Os processos que compartilham o banco: quem vive, e até quando.",
    ),
    "brokers": (
        "The brokers: which one is published to, how each answers, what waits there.",
        "Os brokers: em qual se publica, como cada um responde, o que espera em cada um.",
    ),
    "top": (
        "Rates, what is in flight, queues, brokers and failures of a running server.",
        "Taxas, o que está em andamento, filas, brokers e falhas de um servidor no ar.",
    ),
    "replay": (
        "Play a journal again, step by step, and check that it gives the same events. Reads the store; "
        "with --url, only shows what the API tells.",
        "Repete um diário passo a passo e confere que dá os mesmos eventos. Lê o armazenamento; "
        "com --url, só mostra o que a API conta.",
    ),
    "doctor": (
        "Check settings, store, broker, server and machine; each problem comes with its fix.",
        "Verifica configuração, armazenamento, broker, servidor e máquina; cada problema vem com a solução.",
    ),
    "prune": (
        "Forget orchestrations that ended long ago (works on the store, also while the server runs).",
        "Esquece orquestrações que terminaram há muito tempo (no armazenamento, mesmo com o servidor no ar).",
    ),
    "migrate": (
        "Bring the schema of the store up to date; a database of a newer version is refused.",
        "Atualiza o esquema do armazenamento; um banco de uma versão mais nova é recusado.",
    ),
    "migrate-store": (
        "Copy everything from one store into another, empty one (stop the servers first).",
        "Copia tudo de um armazenamento para outro, vazio (pare os servidores antes).",
    ),
    "schema": ("Schemas of messages, requests and API.", "Esquemas de mensagens, requisições e API."),
    "schema.export": (
        "Write a schema to standard output, or to files with --to.",
        "Escreve um esquema na saída padrão, ou em arquivos com --to.",
    ),
    "audit": ("The audit chain over the journal.", "A cadeia de auditoria sobre o diário."),
    "audit.verify": (
        "Make the audit chain again from the journal and compare it with MongoDB; exit status 1 when it is broken.",
        "Refaz a cadeia de auditoria a partir do diário e compara com o MongoDB; código 1 quando está quebrada.",
    ),
    "audit.export": (
        "Write the audit chain as JSON lines, made from the journal.",
        "Escreve a cadeia de auditoria como linhas JSON, feitas a partir do diário.",
    ),
    "topics": ("The Kafka topics of Fluxo C.", "Os tópicos Kafka do Fluxo C."),
    "topics.check": (
        "Compare the topics with what they need; exit status 1 when one is missing or too small. Changes nothing.",
        "Compara os tópicos com o que precisam; código 1 quando falta um ou é pequeno demais. Não muda nada.",
    ),
    "topics.ensure": (
        "Make the topics that are missing. What exists is never made smaller.",
        "Cria os tópicos que faltam. O que existe nunca diminui.",
    ),
    "task-types": ("Task types: names that stand for whole requests.", "Tipos de tarefa: nomes para requisições."),
    "task-types.ls": ("List task types.", "Lista os tipos de tarefa."),
    "task-types.get": ("Show what a task type stands for.", "Mostra o que um tipo de tarefa significa."),
    "task-types.put": (
        "Keep a request (JSON, YAML or Python file, or -) under a name.",
        "Guarda uma requisição (arquivo JSON, YAML ou Python, ou -) sob um nome.",
    ),
    "task-types.rm": ("Remove a task type.", "Remove um tipo de tarefa."),
    "version": ("Show the version.", "Mostra a versão."),
    "demo": (
        "Show the main job working: youtube + blog → relatorio.",
        "Mostra o trabalho principal: youtube + blog → relatorio.",
    ),
    "bench": ("Measure how fast this machine orchestrates.", "Mede quão rápido esta máquina orquestra."),
    "prove": (
        "Run simulated worlds full of faults and check every promise.",
        "Roda mundos simulados cheios de falhas e confere cada promessa.",
    ),
    # options
    "o.json": ("Machine-readable output on standard output.", "Saída para máquinas na saída padrão."),
    "o.url": ("Where the server is (default: ORACULO_URL).", "Onde está o servidor (padrão: ORACULO_URL)."),
    "o.audit-id": ("Only this orchestration.", "Só esta orquestração."),
    "o.audit-pruned": (
        "What ended longer ago was pruned by a release that did not note it.",
        "O que terminou há mais tempo foi podado por uma versão que não anotava.",
    ),
    "o.audit-to": ("File to write to.", "Arquivo onde escrever."),
    "o.unread": (
        "Also those that a projection (the audit) has not read yet.",
        "Também as que uma projeção (a auditoria) ainda não leu.",
    ),
    "o.yes": ("Do not ask.", "Não pergunta."),
    "o.host": ("Address to listen on (default: ORACULO_HOST).", "Endereço onde escutar (padrão: ORACULO_HOST)."),
    "o.port": (
        "Port to listen on, 0 for a free one (default: ORACULO_PORT).",
        "Porta onde escutar, 0 para uma livre (padrão: ORACULO_PORT).",
    ),
    "o.api-only": (
        "Only take requests: other processes on the same database run the engine.",
        "Só receber pedidos: outros processos no mesmo banco rodam o motor.",
    ),
    "o.flow-c": (
        "Take plans of Fluxo C on any broker (as ORACULO_FLOW_C=on).",
        "Receber planos do Fluxo C em qualquer broker (como ORACULO_FLOW_C=on).",
    ),
    "o.engine-only": (
        "Only run the engine: no API but /health, /ready and /metrics.",
        "Só rodar o motor: nenhuma API além de /health, /ready e /metrics.",
    ),
    "o.kubernetes": (
        "Look at a release of the chart instead, with kubectl: pods, probes, Secrets, jobs, versions.",
        "Em vez disso, olhar uma release do chart com kubectl: pods, sondas, Secrets, jobs, versões.",
    ),
    "o.namespace": ("Namespace of the release.", "Namespace da release."),
    "o.release": ("Name of the release.", "Nome da release."),
    "both-only": ("--api-only or --engine-only, not both", "--api-only ou --engine-only, não os dois"),
    "o.workers": (
        "module:worker to run inside this process; may be repeated.",
        "module:worker para rodar neste processo; pode repetir.",
    ),
    "o.target": ("module:worker, a Worker in a module.", "module:worker, um Worker em um módulo."),
    "o.concurrency": ("How many orders are worked on at once.", "Quantas ordens são trabalhadas ao mesmo tempo."),
    "o.name": ("Name that the server sees.", "Nome que o servidor vê."),
    "o.lease": (
        "Seconds without a sign of life after which the server gives an order to another worker.",
        "Segundos sem sinal de vida após os quais o servidor dá a ordem a outro worker.",
    ),
    "o.watch": ("Follow it until it ends.", "Acompanha até o fim."),
    "o.wait": (
        "Wait up to so many seconds for the result and print it; exit status 6 when it takes longer.",
        "Espera o resultado por até tantos segundos e o imprime; código 6 quando demora mais.",
    ),
    "o.strict": ("Count `parcial` as failed (exit status 1).", "Conta `parcial` como falha (código 1)."),
    "o.status": ("Only with this status; may be repeated.", "Só com este status; pode repetir."),
    "o.fonte": ("Only with this source.", "Só com esta fonte."),
    "o.limit": ("At most so many.", "No máximo tantas."),
    "o.since": (
        "Only those begun since: 2025-10-14T12:00:00Z, or an age like 2h or 7d.",
        "Só as iniciadas desde: 2025-10-14T12:00:00Z, ou uma idade como 2h ou 7d.",
    ),
    "o.motivo": ("Why; it is kept.", "Por quê; fica registrado."),
    "o.after": ("Begin after this event number.", "Começa depois deste número de evento."),
    "o.fila": ("Only of this queue.", "Só desta fila."),
    "o.reason": ("Only with this reason.", "Só com este motivo."),
    "o.razao": ("Why, for the record.", "Por quê, para o registro."),
    "o.all": ("All that --fila and --motivo choose.", "Todas as que --fila e --motivo escolhem."),
    "o.until": ("Stop after this event number.", "Para depois deste número de evento."),
    "o.older": ("Age: 30d, 12h, 90m.", "Idade: 30d, 12h, 90m."),
    "o.check-schema": (
        "Change nothing; exit status 1 when the schema is not up to date.",
        "Não muda nada; código 1 quando o esquema não está atualizado.",
    ),
    "o.partitions": (
        "So many for every topic, instead of 3, 6 or 12 as each should have.",
        "Tantas para cada tópico, em vez de 3, 6 ou 12 como cada um deve ter.",
    ),
    "o.replication": (
        "Replicas of every topic (default: 3, or one on each broker where there are fewer).",
        "Réplicas de cada tópico (padrão: 3, ou uma em cada broker onde há menos).",
    ),
    "o.grow": (
        "Give existing topics more partitions; keys then go to other partitions than before.",
        "Dá mais partições a tópicos existentes; chaves passam a ir para outras partições.",
    ),
    "o.from": (
        "The store that is copied: sqlite:// or postgresql://.",
        "O armazenamento copiado: sqlite:// ou postgresql://.",
    ),
    "o.to-store": ("The empty store that everything goes to.", "O armazenamento vazio que recebe tudo."),
    "o.to": ("Folder to write to.", "Pasta onde escrever."),
    "o.every": ("Seconds between two looks.", "Segundos entre duas olhadas."),
    "o.once": ("One look (over a second), then end.", "Uma olhada (de um segundo), e acabou."),
    # messages
    "listening": ("Oráculo {version} listens on {url}", "Oráculo {version} escuta em {url}"),
    "stop-hint": ("Ctrl+C stops it", "Ctrl+C encerra"),
    "stopping": ("stopping; once more stops at once", "encerrando; de novo encerra já"),
    "yes": ("yes", "sim"),
    "draining": ("draining", "drenando"),
    "working": ("{name} works on {queues} from {url}", "{name} trabalha em {queues} de {url}"),
    "waiting-server": ("waiting for the server: {error}", "esperando o servidor: {error}"),
    "unreachable": ("{error}; is it running? `oraculo up` starts it", "{error}; está no ar? `oraculo up` sobe"),
    "missing": (
        "the command `{name}` is not available in this installation",
        "o comando `{name}` não está disponível nesta instalação",
    ),
    "port-in-use": (
        "port {port} of {host} is in use; choose another with --port, or 0 for a free one",
        "a porta {port} de {host} está em uso; escolha outra com --port, ou 0 para uma livre",
    ),
    "accepted": ("accepted", "aceita"),
    "next": ("follow it with", "acompanhe com"),
    "not-yet": ("{id} is still running after {wait:g} s", "{id} ainda está rodando depois de {wait:g} s"),
    "ended": ("{id} ended {status}", "{id} terminou {status}"),
    "cancelled": ("cancelled", "cancelada"),
    "rejected": ("plan {plan} was rejected: {reason}", "o plano {plan} foi rejeitado: {reason}"),
    "already-over": ("had already ended {status}", "já tinha terminado {status}"),
    "confirm": ("{what} {count} dead letters?", "{what} {count} mensagens mortas?"),
    "confirm-prune": (
        "Forget what ended before {before} in {store}?",
        "Esquecer o que terminou antes de {before} em {store}?",
    ),
    "need-yes": ("this cannot be undone: say --yes", "isto não pode ser desfeito: diga --yes"),
    "ids-or-all": ("give ids, or --all (with --fila, --motivo)", "dê ids, ou --all (com --fila, --motivo)"),
    "requeued": ("{count} requeued", "{count} reenviadas"),
    "discarded": ("{count} discarded", "{count} descartadas"),
    "migrated": (
        "{count} orchestrations ({steps} steps) are now in {store}",
        "{count} orquestrações ({steps} passos) estão agora em {store}",
    ),
    "schema-current": ("{store} is up to date: schema {schema}", "{store} está atualizado: esquema {schema}"),
    "schema-migrated": ("{store} now has schema {schema}", "{store} tem agora o esquema {schema}"),
    "schema-behind": (
        "{store} has schema {schema}, this version needs {needed}: run `oraculo migrate`",
        "{store} tem o esquema {schema}, esta versão precisa do {needed}: rode `oraculo migrate`",
    ),
    "topic.ok": (
        "topic {topic}: {partitions} partitions, {replicas} replicas",
        "tópico {topic}: {partitions} partições, {replicas} réplicas",
    ),
    "topic.created": (
        "topic {topic}: created with {partitions} partitions, {replicas} replicas",
        "tópico {topic}: criado com {partitions} partições, {replicas} réplicas",
    ),
    "topic.grown": (
        "topic {topic}: now has {partitions} partitions",
        "tópico {topic}: tem agora {partitions} partições",
    ),
    "topic.missing": (
        "topic {topic} is missing: run `oraculo topics ensure`",
        "falta o tópico {topic}: rode `oraculo topics ensure`",
    ),
    "topic.too_few_partitions": (
        "topic {topic} has too few partitions: {partitions}, {partitions_needed} are needed; "
        "`oraculo topics ensure --grow` adds them",
        "o tópico {topic} tem partições de menos: {partitions}, são necessárias {partitions_needed}; "
        "`oraculo topics ensure --grow` as acrescenta",
    ),
    "topic.too_few_replicas": (
        "topic {topic} has too few replicas: {replicas}, {replicas_needed} are needed; reassign it on the cluster, "
        "or accept it with --replication {replicas}",
        "o tópico {topic} tem réplicas de menos: {replicas}, são necessárias {replicas_needed}; redistribua-o no "
        "cluster, ou aceite com --replication {replicas}",
    ),
    "topic.forgets": (
        "topic {topic} keeps records for {retention_ms} ms, less than the {retention_ms_needed} ms that are advised",
        "o tópico {topic} guarda registros por {retention_ms} ms, menos que os {retention_ms_needed} ms aconselhados",
    ),
    "no-kafka": (
        "there is no Kafka: set KAFKA_BOOTSTRAP_SERVERS, or ORACULO_BROKER to kafka://…",
        "não há Kafka: defina KAFKA_BOOTSTRAP_SERVERS, ou ORACULO_BROKER como kafka://…",
    ),
    "audit-whole": ("the audit chain is whole", "a cadeia de auditoria está íntegra"),
    "audit-gapless": (
        "the journal has no gaps and agrees with the stored results; there is no copy to compare it with",
        "o diário não tem lacunas e concorda com os resultados guardados; não há cópia para comparar",
    ),
    "audit-broken": (
        "the audit chain is broken in {count} places",
        "a cadeia de auditoria está quebrada em {count} lugares",
    ),
    "audit-counts": (
        "{orchestrations} orchestrations, {records} records, {documents} documents made from them",
        "{orchestrations} orquestrações, {records} registros, {documents} documentos feitos deles",
    ),
    "audit-alone": (
        "MONGODB_URI is not set: only the journal was looked at",
        "MONGODB_URI não está definida: só o diário foi examinado",
    ),
    "audit-pending": ("{count} records are not in MongoDB yet", "{count} registros ainda não estão no MongoDB"),
    "audit-archived": (
        "{count} records in MongoDB are of orchestrations that were pruned from the journal",
        "{count} registros no MongoDB são de orquestrações que foram podadas do diário",
    ),
    "audit-erased": (
        "{count} cannot be compared: the key of their tenant was forgotten",
        "{count} não podem ser comparados: a chave do espaço deles foi esquecida",
    ),
    "audit-head": ("last hash: {hash}", "último hash: {hash}"),
    "audit-exported": ("{count} records in {to}", "{count} registros em {to}"),
    "unread": (
        "projection {name} has {steps} steps of the journal still to read; orchestrations among them are kept",
        "a projeção {name} ainda tem {steps} passos do diário para ler; as orquestrações entre eles ficam",
    ),
    "pruned": ("{count} orchestrations forgotten", "{count} orquestrações esquecidas"),
    "same": (
        "{steps} steps, {events} events: replay gives the same",
        "{steps} passos, {events} eventos: repetição igual",
    ),
    "shown": (
        "{events} events as the API tells them; not checked",
        "{events} eventos como a API conta; não conferidos",
    ),
    "differs": ("step {step}: replay gives other events", "passo {step}: a repetição dá outros eventos"),
    "no-store": ("there is no database at {path}", "não há banco de dados em {path}"),
    "stages.coleta": ("collect", "coletas"),
    "stages.execucao": ("execute", "execuções"),
    "attempt": ("attempt {n}", "tentativa {n}"),
    "tickets": ("tickets", "tickets"),
    "conflicting": (
        "{destination}: {n} conflicting answers kept, without effect (oraculo show ID --json, ticket {ticket})",
        "{destination}: {n} respostas conflitantes guardadas, sem efeito (oraculo show ID --json, ticket {ticket})",
    ),
    "events.type": ("Only events of this name.", "Só os eventos deste nome."),
    "events.limit": ("How many of the newest are looked at.", "Quantos dos mais novos são olhados."),
    "waiting": ("waiting", "espera"),
    "fix": ("fix", "solução"),
    "metrics-port": ("metrics are at {url}", "as métricas estão em {url}"),
    "healthy": ("everything is in order", "está tudo em ordem"),
    **DEV_TEXTS,
    **KEY_TEXTS,
    **OPERATION_TEXTS,
    **PLAN_TEXTS,
    **POLICY_TEXTS,
    **TERMINAL_TEXTS,
    **WAIT_TEXTS,
    **TICKET_TEXTS,
    **WORKER_TEXTS,
}


def language(environment: Mapping[str, str] | None = None) -> Language:
    """The language of the person at the terminal, by locale."""
    return "pt" if _locale(environment).startswith("pt") else "en"


def words(environment: Mapping[str, str] | None = None) -> Words:
    """The vocabulary of answers that are shown: English where the locale is. One without a language (`C`, as in most
    scripts) leaves them as the server has them."""
    return "en" if _locale(environment).startswith("en") else "pt"


def _locale(environment: Mapping[str, str] | None) -> str:
    given = os.environ if environment is None else environment
    return (given.get("LC_ALL") or given.get("LC_MESSAGES") or given.get("LANG") or "").lower()


_INDEX = 1 if language() == "pt" else 0


def t(key: str, **values: object) -> str:
    text = _TEXTS[key][_INDEX]
    return text.format(**values) if values else text


def column(name: str) -> str:
    """The title of a column or the name of a value; what has no text of its own is shown as it is called."""
    found = _TEXTS.get(f"column.{name}")
    return name if found is None else found[_INDEX]
