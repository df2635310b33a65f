// A collector in Node.js: orders from `escavador_<fonte>`, answers to `orquestrador_resultados`.
//
//   npm install redis
//   REDIS_URL=redis://127.0.0.1:6379/0 FONTE=eco node worker.mjs
import { hostname } from 'node:os';
import { createClient } from 'redis';

const FONTE = process.env.FONTE ?? 'eco';
const QUEUE = `escavador_${FONTE}`;
const RESULTS = 'orquestrador_resultados';
const GROUP = 'oraculo';
const NAME = `${hostname()}-${process.pid}`;
const ABANDONED_MS = 60_000; // longer than any work here takes: what another worker held for so long is taken over

const client = createClient({ url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379/0' });
client.on('error', (error) => console.error(error.message));
await client.connect();
await client.xGroupCreate(QUEUE, GROUP, '0', { MKSTREAM: true }).catch((error) => {
  if (!error.message.includes('BUSYGROUP')) throw error;
});

async function handle({ id, message }) {
  const order = JSON.parse(message.mensagem);
  const result = {
    correlation_id: order.correlation_id,
    tipo_evento: 'resultado_coleta',
    payload: { fonte: FONTE, status: 'ok', dados: [{ fonte: FONTE, parametros: order.payload.parametros ?? {} }] },
    timestamp: new Date().toISOString(),
    ticket_id: order.ticket_id, // which order this answers: several of one source may be open
    tentativa: order.tentativa,
    token: order.token, // where answers have to prove whose they are
  };
  await client.xAdd(RESULTS, '*', { mensagem: JSON.stringify(result) });
  await client.xAck(QUEUE, GROUP, id); // last: whoever dies before this is followed by another
}

let running = true;
for (const name of ['SIGTERM', 'SIGINT']) process.on(name, () => { running = false; });
console.log(`${NAME} waits for ${QUEUE}`);
while (running) {
  let entries = (await client.xAutoClaim(QUEUE, GROUP, NAME, ABANDONED_MS, '0', { COUNT: 10 })).messages;
  if (entries.length === 0) {
    const found = await client.xReadGroup(GROUP, NAME, [{ key: QUEUE, id: '>' }], { COUNT: 10, BLOCK: 1000 });
    entries = found?.[0]?.messages ?? [];
  }
  for (const entry of entries) await handle(entry);
}
await client.close();
