"""What is still owed can be told from the state alone, which is what a crash collects on."""

from __future__ import annotations

from core.given import Story, plan
from oraculo.core.effects import Notify, Publish, owed_effects
from oraculo.core.state import Orchestration, fold
from oraculo.core.vocabulary import FanIn


def recovered(story: Story) -> Orchestration:
    return fold(story.journal)


def test_messages_that_no_broker_confirmed() -> None:
    story = Story(plan(3, 1))
    story.confirm(1)
    assert owed_effects(recovered(story)) == [Publish([(0, 1), (2, 1)])]


def test_with_the_attempt_that_is_owed() -> None:
    story = Story(plan(1, attempts=2))
    story.fail(0)
    assert owed_effects(recovered(story)) == []
    story.wake(5)
    assert owed_effects(recovered(story)) == [Publish([(0, 2)])]


def test_resend_adds_the_messages_of_running_tickets() -> None:
    story = Story(plan(4, 1, attempts=3))
    story.confirm(0, 1, 2)
    story.ok(0)
    story.fail(1)
    assert owed_effects(recovered(story), lambda _queue: True) == [Publish([(3, 1), (2, 1)])]
    assert owed_effects(recovered(story), lambda queue: queue != "escavador_fonte2") == [Publish([(3, 1)])]
    assert owed_effects(recovered(story)) == [Publish([(3, 1)])]


def test_what_the_fan_in_made_pointless_is_not_owed() -> None:
    story = Story(plan(3, 0, modo=FanIn.PRIMEIRO))
    story.confirm(1)
    story.ok(0)
    assert owed_effects(recovered(story), lambda _queue: True) == []


def test_notices_that_nobody_took_yet() -> None:
    story = Story(plan(1, webhook="https://example.com", fila="avisos"))
    assert owed_effects(recovered(story)) == [Publish([(0, 1)])]
    story.ok(0)
    assert owed_effects(recovered(story), lambda _queue: True) == [Notify(0, 1), Notify(1, 1)]
    story.told(0, 1)
    assert owed_effects(recovered(story)) == [Notify(1, 1)]
    story.told(1, 1, delivered=True)
    assert owed_effects(recovered(story)) == []
    story.wake(10)
    assert owed_effects(recovered(story)) == [Notify(0, 2)]


def test_effects_of_steps_and_of_recovery_are_the_same() -> None:
    story = Story(plan(3, 2, fila="avisos"))
    for position in range(3):
        story.ok(position)
    assert owed_effects(recovered(story)) == [Publish([(3, 1), (4, 1)])] == story.effects[-1:]
