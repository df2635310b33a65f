// A collector in Node.js: orders from `escavador_<fonte>`, answers to `orquestrador_resultados`.
//
//   npm install nats
//   NATS_URL=nats://127.0.0.1:4222 FONTE=eco node worker.mjs
import { AckPolicy, RetentionPolicy, connect, nanos } from 'nats';

const FONTE = process.env.FONTE ?? 'eco';
const QUEUE = `escavador_${FONTE}`;
const RESULTS = 'orquestrador_resultados';
const GROUP = 'oraculo';
const LEASE_MS = 60_000; // longer than any work here takes: what a worker held for so long goes to another one

const connection = await connect({ servers: process.env.NATS_URL ?? 'nats://127.0.0.1:4222', maxReconnectAttempts: -1 });
const js = connection.jetstream();
const manager = await connection.jetstreamManager();

// The stream that keeps this subject; one is made when the worker is the first to need it.
async function streamOf(subject) {
  try {
    return await manager.streams.find(subject);
  } catch {
    await manager.streams
      .add({ name: subject, subjects: [subject], retention: RetentionPolicy.Workqueue })
      .catch(() => {}); // somebody was quicker
    return manager.streams.find(subject);
  }
}

async function handle(message) {
  const order = message.json();
  const result = {
    correlation_id: order.correlation_id,
    tipo_evento: 'resultado_coleta',
    payload: { fonte: FONTE, status: 'ok', dados: [{ fonte: FONTE, parametros: order.payload.parametros ?? {} }] },
    timestamp: new Date().toISOString(),
    ticket_id: order.ticket_id, // which order this answers: several of one source may be open
    tentativa: order.tentativa,
    token: order.token, // where answers have to prove whose they are
  };
  await js.publish(RESULTS, JSON.stringify(result)); // resolves once JetStream has it
  message.ack(); // last: whoever dies before this is followed by another
}

await streamOf(RESULTS);
const stream = await streamOf(QUEUE);
const consumer = await js.consumers.get(stream, GROUP).catch(async () => {
  const ours = { durable_name: GROUP, ack_policy: AckPolicy.Explicit, ack_wait: nanos(LEASE_MS), filter_subject: QUEUE };
  await manager.consumers.add(stream, ours);
  return js.consumers.get(stream, GROUP);
});

let running = true;
for (const name of ['SIGTERM', 'SIGINT']) process.on(name, () => { running = false; });
console.log(`waiting for ${QUEUE}`);
while (running) {
  for await (const message of await consumer.fetch({ max_messages: 10, expires: 1000 })) await handle(message);
}
await connection.drain();
