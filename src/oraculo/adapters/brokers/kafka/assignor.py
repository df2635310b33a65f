"""Which member gets which partition, and which members still work on messages of a partition that they lost.

Kafka asks all members of a group what they have to say, and lets one of them decide who gets what. The usual rules know
nothing of work in progress: when a process joins, partitions move, and messages that are being worked on are given to
a second member as well. Here every member says which messages it holds, and every new owner of a partition is told
which of its messages are in other hands, and which were settled there meanwhile. What a member held that is gone is
free.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

STATE_MAX_MESSAGES = 5000  # that a member names; what it holds beyond that may be given to others too

Offsets = dict[int, list[int]]  # partition → offsets


@dataclass(frozen=True, slots=True)
class MemberState:
    """What a member says of itself: the messages that it holds, those that it settled in partitions that were no longer
    its own, the partitions that it has, and whether it fetches."""

    held: Offsets = field(default_factory=dict)
    done: Offsets = field(default_factory=dict)
    has: frozenset[int] = frozenset()
    wants: bool = True

    def write(self) -> bytes:
        said = {"held": _short(self.held), "done": _short(self.done), "has": sorted(self.has), "wants": self.wants}
        return json.dumps(said, separators=(",", ":")).encode()

    @classmethod
    def read(cls, data: bytes | None) -> MemberState:
        """Of a member that says nothing that we know: it wants its share."""
        try:
            said = json.loads(data or b"{}")
            has = frozenset(map(int, said["has"]))
            return cls(_offsets(said["held"]), _offsets(said["done"]), has, bool(said["wants"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls()


@dataclass(frozen=True, slots=True)
class News:
    """What the others said of messages in our partitions."""

    held: Offsets = field(default_factory=dict)
    done: Offsets = field(default_factory=dict)

    def write(self) -> bytes:
        return json.dumps({"held": self.held, "done": self.done}, separators=(",", ":")).encode()

    @classmethod
    def read(cls, data: bytes | None) -> News:
        """A plain client that decides says nothing."""
        try:
            said = json.loads(data or b"{}")
            return cls(_offsets(said["held"]), _offsets(said["done"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls()

    @classmethod
    def of(cls, partitions: Iterable[int], others: Iterable[MemberState]) -> News:
        news = cls()
        mine = set(partitions)
        for other in others:
            for theirs, ours in ((other.held, news.held), (other.done, news.done)):
                for partition, offsets in theirs.items():
                    if partition in mine:
                        ours.setdefault(partition, []).extend(offsets)
        return news


def share(partitions: Iterable[int], states: Mapping[str, MemberState]) -> dict[str, list[int]]:
    """Every partition to exactly one member, evenly among the members that fetch, with as few moves as that allows."""
    given: dict[str, list[int]] = {member: [] for member in sorted(states)}
    takers = [member for member in given if states[member].wants] or list(given)
    every = sorted(partitions)
    least, extra = divmod(len(every), len(takers))
    moving = []
    for partition in every:
        owner = next((member for member in takers if partition in states[member].has), None)
        if owner is not None and len(given[owner]) < least:
            given[owner].append(partition)
        elif owner is not None and len(given[owner]) == least and extra:
            given[owner].append(partition)
            extra -= 1
        else:
            moving.append(partition)
    for partition in moving:
        given[min(takers, key=lambda member: len(given[member]))].append(partition)
    return given


class OwnershipAssignor(AbstractPartitionAssignor):  # type: ignore[misc]
    """Made for one consumer of one topic, whose state it asks for whenever the group forms anew.

    It goes by the name of the round robin that plain clients know, so that they can be members too; when one of them
    decides, it shares as it knows how.
    """

    name = "roundrobin"

    def __init__(self, state: Callable[[], MemberState]) -> None:
        self._state = state
        self.news = News()

    def metadata(self, topics: Iterable[str]) -> Any:
        return ConsumerProtocolMemberMetadata(0, list(topics), self._state().write())

    def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, Any]:
        states = {member: MemberState.read(said.user_data) for member, said in members.items()}
        given: dict[str, list[tuple[str, list[int]]]] = {member: [] for member in members}
        for topic in sorted({topic for said in members.values() for topic in said.subscription}):
            those = {member: states[member] for member, said in members.items() if topic in said.subscription}
            for member, partitions in share(cluster.partitions_for_topic(topic) or (), those).items():
                given[member].append((topic, partitions))
        found = {}
        for member, parts in given.items():
            topics = set(members[member].subscription)  # partitions of other topics have the same numbers
            others = (states[one] for one, said in members.items() if one != member and topics & {*said.subscription})
            news = News.of((partition for _, partitions in parts for partition in partitions), others)
            found[member] = ConsumerProtocolMemberAssignment(0, parts, news.write())
        return found

    def on_assignment(self, assignment: Any) -> None:
        self.news = News.read(assignment.user_data)


def _offsets(said: Any) -> Offsets:
    return {int(partition): [int(offset) for offset in offsets] for partition, offsets in said.items()}


def _short(offsets: Offsets) -> Offsets:
    left, short = STATE_MAX_MESSAGES, {}
    for partition, some in offsets.items():
        if left > 0:
            short[partition] = some[:left]
            left -= len(some)
    return short
