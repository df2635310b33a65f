import pika
import json

connection = pika.BlockingConnection(pika.ConnectionParameters('rabbitmq'))
channel = connection.channel()
channel.queue_declare(queue='escavador_youtube')

mensagem = {
    "correlation_id": "123e4567-e89b-12d3-a456-426614174000",
    "tipo_evento": "iniciar_coleta",
    "payload": {"param": "valor"},
    "timestamp": "2025-10-14T12:00:00Z"
}
channel.basic_publish(
    exchange='',
    routing_key='escavador_youtube',
    body=json.dumps(mensagem)
)
connection.close()
