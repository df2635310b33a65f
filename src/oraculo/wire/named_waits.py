"""Waits of a plan: what a user wrote → the task that waits."""

from __future__ import annotations

from datetime import timedelta

from oraculo.core.plan import Task
from oraculo.core.vocabulary import Kind
from oraculo.core.waits import Wait, WaitKind
from oraculo.plans.json_values import texts_in
from oraculo.plans.model import ApprovalWait, InstantWait, Json, Otherwise, SignalWait, TimerWait, WaitNode
from oraculo.wire import strict_json


def wait_of(node: WaitNode) -> Wait:
    """What the task waits for."""
    limit = None if node.limit_s is None else timedelta(seconds=node.limit_s)
    match node.wait:
        case SignalWait(signal, _, on_expire):
            return Wait(WaitKind.SIGNAL, signal, (), limit, on_expire is Otherwise.SEGUE)
        case ApprovalWait(_, roles, _, on_expire, on_refuse):
            continues = on_expire is Otherwise.SEGUE, on_refuse is Otherwise.SEGUE
            return Wait(WaitKind.APPROVAL, "", roles, limit, *continues)
        case TimerWait():
            return Wait(WaitKind.SECONDS)
        case InstantWait():
            return Wait(WaitKind.UNTIL)


def task_of(node: WaitNode) -> Task:
    """The task itself: no queue, no attempts. Its parameters are the one value that may be an expression."""
    wait = wait_of(node)
    return Task(Kind.ESPERA, wait.name, "", strict_json.compact(_value(node)), wait.limit or timedelta(), 1)


def has_expressions(node: WaitNode) -> bool:
    return any(texts_in(_value(node), ()))


def _value(node: WaitNode) -> Json:
    match node.wait:
        case TimerWait(seconds):
            return seconds
        case InstantWait(until):
            return until
        case ApprovalWait(question):
            return question
        case SignalWait():
            return None
