"""Ticket ids: UUIDs (version 8) that say which orchestration and which task they belong to.

An answer or a look-up needs no index from ticket to orchestration: the id holds the orchestration's number and the
task's position, and 26 check bits so that a mistyped id is not taken for another one.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from struct import Struct

_CHECK_BITS = 26
_CHECK_MASK = (1 << _CHECK_BITS) - 1
_POSITION_BITS = 32
_PLAN_POSITION = (1 << _POSITION_BITS) - 1
_HALVES = Struct(">QQ")  # 16 bytes as two numbers: an id is never handled as one of 128 bits, which is slow


def _check(run: int, position: int) -> int:
    return zlib.crc32(b"%d:%d" % (run, position)) & _CHECK_MASK


def ticket_id(run: int, position: int) -> str:
    """The id of the task at `position` of orchestration number `run`."""
    high = (run >> 16) << 16 | 0x8 << 12 | (run >> 4) & 0xFFF  # 48 bits, the version, 12 bits
    low = 0b10 << 62 | (run & 0xF) << (_POSITION_BITS + _CHECK_BITS) | position << _CHECK_BITS | _check(run, position)
    text = _HALVES.pack(high, low).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


recent_ticket_id = lru_cache(8192)(ticket_id)  # for those who ask for the same id again shortly


def plan_id(run: int) -> str:
    """The id of the plan of orchestration number `run`: of the same family, at a position that no task has."""
    return ticket_id(run, _PLAN_POSITION)


def parse_ticket_id(text: str) -> tuple[int, int] | None:
    """(run, position), or None when it is not an id that we made."""
    if len(text) != 36:
        return None
    try:
        raw = bytes.fromhex(text.replace("-", ""))
    except ValueError:
        return None
    if len(raw) != 16:
        return None
    high, low = _HALVES.unpack(raw)
    run = high >> 16 << 16 | (high & 0xFFF) << 4 | low >> (_POSITION_BITS + _CHECK_BITS) & 0xF
    position = low >> _CHECK_BITS & _PLAN_POSITION
    marks = high >> 12 & 0xF == 0x8 and low >> 62 == 0b10
    return (run, position) if marks and low & _CHECK_MASK == _check(run, position) else None
