// A collector that knows nothing of Oráculo: amqplib, the queue names and four fields of JSON.
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
  };
  channel.sendToQueue(RESULTS, Buffer.from(JSON.stringify(answer)), { persistent: true });
  await channel.waitForConfirms();
  channel.ack(message); // only now: if this process dies before, somebody else gets the order
});
console.log("esperando ordens");
