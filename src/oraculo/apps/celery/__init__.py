"""The Celery application of the engine `celery`: its tasks, and the process of a worker that runs them.

celery -A oraculo.engines.celery worker
celery -A oraculo.engines.celery beat
"""
