import pika
import json

def callback(ch, method, properties, body):
    mensagem = json.loads(body)
    print(f"Recebido: {mensagem}")
    ch.basic_ack(delivery_tag=method.delivery_tag)

connection = pika.BlockingConnection(pika.ConnectionParameters('rabbitmq'))
channel = connection.channel()
channel.queue_declare(queue='escavador_youtube')
channel.basic_consume(queue='escavador_youtube', on_message_callback=callback)
channel.start_consuming()
