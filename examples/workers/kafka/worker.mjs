// A collector in Node.js: orders from `escavador_<fonte>`, answers to `orquestrador_resultados`.
//
//   npm install kafkajs
//   KAFKA_SERVERS=127.0.0.1:9092 FONTE=eco node worker.mjs
import kafkajs from 'kafkajs';

const SERVERS = (process.env.KAFKA_SERVERS ?? '127.0.0.1:9092').split(',');
const FONTE = process.env.FONTE ?? 'eco';
const QUEUE = `escavador_${FONTE}`;
const RESULTS = 'orquestrador_resultados';
const GROUP = `oraculo.${QUEUE}`; // kafkajs shares partitions in its own way: no other kind of worker in this group

const { Kafka, logLevel } = kafkajs;
const kafka = new Kafka({ clientId: 'escavador', brokers: SERVERS, logLevel: logLevel.ERROR });
const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
const consumer = kafka.consumer({ groupId: GROUP, metadataMaxAge: 5000, retry: { retries: Number.MAX_SAFE_INTEGER } });

async function handle(message) {
  const order = JSON.parse(message.value.toString());
  const result = {
    correlation_id: order.correlation_id,
    tipo_evento: 'resultado_coleta',
    payload: { fonte: FONTE, status: 'ok', dados: [{ fonte: FONTE, parametros: order.payload.parametros ?? {} }] },
    timestamp: new Date().toISOString(),
    ticket_id: order.ticket_id, // which order this answers: several of one source may be open
    tentativa: order.tentativa,
    token: order.token, // where answers have to prove whose they are
  };
  await producer.send({ topic: RESULTS, acks: -1, messages: [{ value: JSON.stringify(result) }] });
}

async function subscribed() {
  for (;;) {
    try {
      return await consumer.subscribe({ topic: QUEUE, fromBeginning: true });
    } catch (error) {
      if (!error.retriable) throw error; // it was just made, and not every node knows it yet
    }
  }
}

await producer.connect();
await consumer.connect();
await subscribed();
for (const name of ['SIGTERM', 'SIGINT']) {
  process.on(name, async () => {
    await consumer.disconnect();
    await producer.disconnect();
    process.exit(0);
  });
}
console.log(`waiting for ${QUEUE}`);
await consumer.run({
  autoCommit: false,
  eachMessage: async ({ topic, partition, message }) => {
    await handle(message);
    // Last: whoever dies before this is followed by another.
    await consumer.commitOffsets([{ topic, partition, offset: (BigInt(message.offset) + 1n).toString() }]);
  },
});
