"""Check a commit message: a subject of at most 72 characters, an empty line, and a body that says why.

Called by the commit-msg hook with the file of the message. Merges, reverts and fixups are not checked: git writes them.
"""

import sys
from pathlib import Path

SUBJECT_MAX_CHARACTERS = 72
GENERATED_BY_GIT = ("Merge ", "Revert ", "fixup! ", "squash! ", "amend! ")
SCISSORS = "# ------------------------ >8 ------------------------"


def complaints(message: str) -> list[str]:
    """Return what is wrong with the message, in words; nothing when it is in order."""
    lines = _written(message)
    if not lines:
        return ["the message is empty"]
    subject, *rest = lines
    if subject.startswith(GENERATED_BY_GIT):
        return []
    found = []
    if len(subject) > SUBJECT_MAX_CHARACTERS:
        found.append(f"the subject has {len(subject)} characters, {SUBJECT_MAX_CHARACTERS} are allowed")
    if subject.endswith("."):
        found.append("the subject ends with a full stop")
    if rest and rest[0]:
        found.append("the line after the subject is not empty")
    if not any(rest):
        found.append("there is no body: say why, in a line or two after an empty line")
    return found


def _written(message: str) -> list[str]:
    """Return the lines of the author: without comments and without the diff that `git commit -v` appends."""
    lines = [line.rstrip() for line in message.partition(SCISSORS)[0].splitlines() if not line.startswith("#")]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines


def main() -> int:
    found = complaints(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for one in found:
        sys.stderr.write(f"commit message: {one}\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
