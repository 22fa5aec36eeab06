"""Tasks that a worker starts by the fetch that brings them, before it has seen them."""

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from dtq.adapters.memory.commit import commit
from dtq.adapters.memory.state import State
from dtq.domain.task import LeaseToken, QueueName, WorkerId
from dtq.ports.answers import Applied
from dtq.ports.broker import Delivery, Offers


def begin_all(state: State, deliveries: Sequence[Delivery], offers: Offers, *, worker: WorkerId) -> Sequence[Delivery]:
    """Start what merely waits for its first start, each by the next offer."""
    found = []
    used = 0
    for delivery in deliveries:
        # one that was started may have another entry among them
        one = state.delivery(delivery.receipt, delivery.fields)
        begun = one if used == len(offers.starts) else _begin(state, one, offers, number=used, worker=worker)
        used += begun.started is not None
        found.append(begun)
    return found


def _begin(state: State, delivery: Delivery, offers: Offers, *, number: int, worker: WorkerId) -> Delivery:
    if delivery.task is None:
        return delivery
    change = offers.start(delivery.task, number=number, receipt=delivery.receipt, worker=worker)
    if change is None or not isinstance(commit(state, change), Applied):
        return delivery
    return replace(delivery, started=change)


def begun(state: State, queue: QueueName, *, worker: WorkerId, leases: Collection[LeaseToken]) -> Sequence[Delivery]:
    """Return what *worker* owns of a queue whose stored task names one of *leases*."""
    found: list[Delivery] = []
    for receipt in state.queue(queue).receipts(queue, owner=worker):
        fields = state.stream(receipt.queue, receipt.priority).entries.get(receipt.entry_id)
        delivery = None if fields is None else state.delivery(receipt, fields)
        if delivery is not None and delivery.task is not None and delivery.task.lease in leases:
            found.append(delivery)
    return found
