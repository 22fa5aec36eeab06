"""What a worker takes for its own, and when handlers that cannot be stopped leave it nothing to do."""

from dtq.application.handover import Hold
from dtq.application.in_flight import InFlight, Job
from dtq.domain.status import TaskStatus
from dtq.ports.broker import HeldLease
from tests.factories import a_lease, a_receipt, a_task, a_task_id


def a_job() -> Job:
    lease = HeldLease(task_id=a_task_id(), receipt=a_receipt(), lease=a_lease())
    return Job(a_task(status=TaskStatus.RUNNING), hold=Hold(lease=lease, until=0.0))


def test_an_entry_is_owned_until_its_attempt_is_recorded_and_no_longer() -> None:
    in_flight, job = InFlight(capacity=1, on_change=lambda: None, on_stuck=lambda: None), a_job()
    receipt = job.hold.lease.receipt

    in_flight.add(job)
    assert in_flight.owns(receipt)
    in_flight.record(job)

    # its handler goes on, which is no reason to pass over an entry that comes round again
    assert (False, 0) == (in_flight.owns(receipt), in_flight.free)
    in_flight.end(job)
    assert (False, 1) == (in_flight.owns(receipt), in_flight.free)


def test_a_worker_that_still_runs_something_is_not_stuck() -> None:
    in_flight, first, second = InFlight(capacity=2, on_change=lambda: None, on_stuck=lambda: None), a_job(), a_job()
    in_flight.add(first)
    in_flight.add(second)
    found = {"both run": in_flight.is_stuck}

    in_flight.record(first)
    found["one is recorded, and its handler goes on"] = in_flight.is_stuck
    in_flight.record(second)
    found["neither can be stopped"] = in_flight.is_stuck
    in_flight.end(first)
    found["one has ended"] = in_flight.is_stuck

    assert ["neither can be stopped"] == [when for when, is_stuck in found.items() if is_stuck]
