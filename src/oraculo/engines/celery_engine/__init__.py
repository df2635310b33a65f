"""The engine `celery`: commands and effects travel as Celery tasks; the core, the store and the messages are the same.

application.py  the Celery application that tasks are sent with
routes.py       which queue takes what
effects.py      what is owed → tasks
engine.py       the engine: the kernel with tasks in the place of an effect runner
"""
