"""A shop: orders are collected, each is charged, somebody approves, the parcel goes."""

from oraculo import Plan, Worker

worker = Worker()
bank: dict[str, int] = {}  # stands for the service that takes the money


@worker.collector("orders")
async def orders(params: dict) -> list[dict]:
    return [{"order": number, "price": 10 * number} for number in range(1, params["count"] + 1)]


@worker.executor("charge")
def charge(params: dict, ticket_id: str) -> dict:
    bank.setdefault(ticket_id, params["price"])  # the same ticket again is the same charge
    return {"charged": params["price"]}


@worker.executor("send")
async def send(params: dict) -> dict:
    return {"parcels": params["count"]}


plan = Plan()
new = plan.collect("new", "orders", {"count": 3})
charges = plan.for_each("charges", new.data, Plan.executor("charge", {"price": Plan.item.price}))
approval = plan.wait_approval("approval", "send them?", needs=[charges])
sent = plan.execute("sent", "send", {"count": charges.total}, needs=[approval])
plan.output = sent.result
