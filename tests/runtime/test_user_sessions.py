"""Users in sessions of the store: what is written is read again, and nothing else is taken for a user."""

from __future__ import annotations

from itertools import combinations

import pytest

from oraculo.core.access import USER_ROLES, actor_of_user
from oraculo.runtime.user_sessions import text_of_user, user_of_text


def test_every_set_of_roles_comes_back_with_the_same_scopes() -> None:
    for size in range(len(USER_ROLES) + 1):
        for roles in combinations(USER_ROLES, size):
            actor = actor_of_user("ana|1", roles)
            assert user_of_text(text_of_user(actor)) == actor


@pytest.mark.parametrize(
    "text",
    ["k7qmz2c4tb5x", "", "user:", "user:{}", 'user:{"sub":"local","roles":[]}', 'user:{"sub":"a","roles":["rei"]}'],
)  # fmt: skip
def test_what_is_no_user_is_none(text: str) -> None:
    assert user_of_text(text) is None
