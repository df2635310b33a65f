"""The shop under faults. Run it: `pytest examples/testing`."""

import shop

from oraculo.testing import KitWorld, run


async def buying(world: KitWorld) -> None:
    shop.bank.clear()
    name = await world.submit(shop.plan)
    await world.waiting(name, "approval")
    await world.sleep(3 * 24 * 3600)  # three days pass at once
    await world.approve(name, by="Ana")
    result = await world.result(name)
    assert result["status"] == "concluida"
    assert result["saida"] == {"parcels": 3}
    assert sorted(shop.bank.values()) == [10, 20, 30], "charged twice, or not at all"


def test_buying_works() -> None:
    outcome = run(buying, shop.worker)
    assert [call.function for call in outcome.calls] == ["orders", "charge", "charge", "charge", "send"]


def test_nobody_is_charged_twice_whatever_happens(oraculo_check) -> None:
    oraculo_check(buying, shop.worker, seeds=100, faults="kill drop duplicate late")
