"""Tasks that a worker has started without hearing of it."""

from collections.abc import Collection, Sequence

from dtq.adapters.redis.client import checked
from dtq.adapters.redis.codec import PAYLOAD, SNAPSHOT
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.ready import owned
from dtq.adapters.redis.store import read_many, readable
from dtq.adapters.redis.wire import pairs
from dtq.domain.task import LeaseToken, QueueName, Receipt, TaskId, WorkerId
from dtq.ports.broker import Delivery


async def begun(
    link: Link, queue: QueueName, *, worker: WorkerId, leases: Collection[LeaseToken]
) -> Sequence[Delivery]:
    """Find them among the entries that *worker* owns, as the port promises."""
    receipts = await owned(link, queue, worker=worker)
    reads = [("XRANGE", link.keys.stream(queue, one.priority), one.entry_id, one.entry_id) for one in receipts]
    entries: list[tuple[Receipt, dict[str, str]]] = []
    for receipt, found in zip(receipts, await link.client.pipeline(reads), strict=True):
        # of an entry that was deleted only its id is left with its owner
        entries += [(receipt, pairs(fields)) for _, fields in checked(found)]
    ids = [TaskId(fields.get("task_id", "")) for _, fields in entries]
    deliveries: list[Delivery] = []
    for (receipt, fields), values in zip(entries, await read_many(link, ids, SNAPSHOT), strict=True):
        task = readable(values, task_id=fields.get("task_id", ""), payload=fields.get(PAYLOAD))
        if task is not None and task.lease in leases:
            deliveries.append(Delivery(receipt=receipt, fields=fields, task=task))
    return deliveries
