"""Ticket ids: UUIDs (version 8) that say which orchestration and which task they belong to.

An answer or a look-up needs no index from ticket to orchestration: the id holds the orchestration's number and the
task's position, and 26 check bits so that a mistyped id is not taken for another one.
"""

from __future__ import annotations

import zlib

_CHECK_BITS = 26
_CHECK_MASK = (1 << _CHECK_BITS) - 1
_POSITION_BITS = 32
_PLAN_POSITION = (1 << _POSITION_BITS) - 1


def _check(run: int, position: int) -> int:
    return zlib.crc32(b"%d:%d" % (run, position)) & _CHECK_MASK


def ticket_id(run: int, position: int) -> str:
    """The id of the task at `position` of orchestration number `run`."""
    high = run >> 16  # 48 bits
    middle = (run >> 4) & 0xFFF  # 12 bits
    low = ((run & 0xF) << (_POSITION_BITS + _CHECK_BITS)) | (position << _CHECK_BITS) | _check(run, position)
    text = f"{(high << 80) | (0x8 << 76) | (middle << 64) | (0b10 << 62) | low:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def plan_id(run: int) -> str:
    """The id of the plan of orchestration number `run`: of the same family, at a position that no task has."""
    return ticket_id(run, _PLAN_POSITION)


def parse_ticket_id(text: str) -> tuple[int, int] | None:
    """(run, position), or None when it is not an id that we made."""
    digits = text.replace("-", "")
    if len(text) != 36 or len(digits) != 32 or not digits.isascii() or not digits.isalnum():
        return None
    try:
        number = int(digits, 16)
    except ValueError:
        return None
    low = number & ((1 << 62) - 1)
    run = ((number >> 80) << 16) | (((number >> 64) & 0xFFF) << 4) | (low >> (_POSITION_BITS + _CHECK_BITS))
    position = (low >> _CHECK_BITS) & ((1 << _POSITION_BITS) - 1)
    marks = (number >> 76) & 0xF == 0x8 and (number >> 62) & 0b11 == 0b10 and number >> 128 == 0
    return (run, position) if marks and low & _CHECK_MASK == _check(run, position) else None
