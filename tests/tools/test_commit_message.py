"""The commit-msg hook, and the hooks that call the Makefile."""

import re
from pathlib import Path

import pytest
import yaml
from tools.commit_message import SCISSORS, complaints

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "message",
    [
        "Add a thing\n\nPeople asked for it.\n",
        "Add a thing\n\nPeople asked for it.\n# a comment of git\n",
        f"Add a thing\n\nPeople asked for it.\n{SCISSORS}\ndiff --git a b\n",
        "Merge branch 'a'\n",
        "fixup! Add a thing\n",
    ],
)
def test_a_message_in_order_is_accepted(message: str) -> None:
    assert complaints(message) == []


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ("", "empty"),
        ("# only a comment\n", "empty"),
        ("Add a thing\n", "no body"),
        (f"Add a thing\n\n# no body\n{SCISSORS}\ndiff --git a b\n", "no body"),
        ("Add a thing\nPeople asked for it.\n", "not empty"),
        (f"{'x' * 73}\n\nWhy.\n", "73 characters"),
        ("Add a thing.\n\nWhy.\n", "full stop"),
    ],
)
def test_a_message_out_of_order_is_refused_with_the_reason(message: str, complaint: str) -> None:
    assert any(complaint in one for one in complaints(message))


def test_every_hook_calls_a_target_or_a_script_that_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    (repo,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    for hook in repo["hooks"]:
        command, name = hook["entry"].split()
        assert name in targets if command == "make" else (ROOT / name).is_file(), hook["id"]
