// A collector that knows nothing of Oráculo: amqplib, the queue names and seven fields of JSON.
//
// npm ci; AMQP_URL=amqp://guest:guest@localhost:5672/ node worker.mjs
import amqp from "amqplib";

const FONTE = "youtube";
const ORDERS = `escavador_${FONTE}`;
const RESULTS = "orquestrador_resultados";

// The work. Here: nothing is fetched.
async function collect(parametros) {
  return [{ titulo: `vídeo de ${parametros.canal ?? "?"}` }];
}

const connection = await amqp.connect(process.env.AMQP_URL ?? "amqp://localhost/");
const channel = await connection.createConfirmChannel();
await channel.assertQueue(ORDERS, { durable: true });
await channel.assertQueue(RESULTS, { durable: true });
await channel.prefetch(1);

await channel.consume(ORDERS, async (message) => {
  if (message === null) process.exit(1); // the queue was deleted
  const order = JSON.parse(message.content.toString());
  const answer = {
    correlation_id: order.correlation_id,
    tipo_evento: "resultado_coleta",
    payload: { fonte: FONTE, status: "ok", dados: await collect(order.payload.parametros ?? {}) },
    timestamp: new Date().toISOString(),
    ticket_id: order.ticket_id, // which order this answers: several of one source may be open
    tentativa: order.tentativa,
    token: order.token, // where answers have to prove whose they are
  };
  channel.sendToQueue(RESULTS, Buffer.from(JSON.stringify(answer)), { persistent: true });
  await channel.waitForConfirms();
  channel.ack(message); // only now: if this process dies before, somebody else gets the order
});
console.log("esperando ordens");
