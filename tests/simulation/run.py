"""One seed from its plan to its history."""

import gc
from collections.abc import Sequence
from typing import Final

from dtq.adapters.memory.commit import key_record
from dtq.adapters.memory.state import MAX_AUDIT, MAX_RECENT
from dtq.domain.task import QueueName, TaskId
from tests.simulation.chances import child
from tests.simulation.client import Client
from tests.simulation.history import Entry, History, Remains, Terms
from tests.simulation.loop import VirtualLoop
from tests.simulation.nemesis import Nemesis
from tests.simulation.plan import Action, Mode, Plan, plan_of
from tests.simulation.process import Process
from tests.simulation.server import Server
from tests.simulation.threads import virtual_threads
from tests.simulation.watcher import Watcher
from tests.simulation.wire import Wire

LONGEST_DRAIN: Final = 12.0
"""How many seconds the workers have to end when all is quiet; their own limit is 4."""

_LOOK: Final = 0.5
_RESTART: Final = (0.2, 4.0)


class System:
    """Everybody and everything of one run."""

    def __init__(self, plan: Plan, *, loop: VirtualLoop, history: History) -> None:
        self.plan = plan
        self.loop = loop
        self.history = history
        self.server = Server(loop, history=history)
        self.staff: dict[str, Process] = {}
        self._all: list[Process] = []
        self._generations: dict[str, int] = {}
        self._random = child(plan.seed, "director")
        known: dict[int, TaskId] = {}
        self.clients = [Client(f"api{number}", generation=1, server=self.server, known=known) for number in range(2)]
        self._known = known
        self._successions = 0
        self._gone: list[Client] = []
        self.watcher = Watcher("watcher", server=self.server)
        self.nemesis = Nemesis(
            self.server,
            staff=self.staff,
            clients=self.clients,
            wires=self.wires,
            hire=self._hire,
            crash=self._crash,
        )
        self._is_closing = False

    def wires(self) -> list[list[Wire]]:
        """Every connection, those of one process together."""
        apart = [[client.wire] for client in self.clients] + [[self.watcher.wire]]
        return [process.wires for process in self._all if not process.is_over] + apart

    async def run(self) -> None:
        """Do everything that the plan has, heal, wait until all is quiet, send everybody home."""
        for hiring in self.plan.workers:
            self._hire(hiring.slot)
        for number, client in enumerate(self.clients):
            client.begin(tuple(action for action in self.plan.actions if action.client == number))
        self.watcher.begin()
        self.nemesis.begin(self.plan.disasters)
        await self._pass(self._last_trouble())
        while self._successions:
            await self._pass(_LOOK)
        self.history.healed_at = self.loop.time()
        self.clients[0].resume_all([hiring.settings.queue for hiring in self.plan.workers])
        await self._until_quiet()
        # what is on its way to the watchers arrives
        await self._pass(6.5)
        await self._close()
        self.history.remains = self._remains()

    def _last_trouble(self) -> float:
        ends = [disaster.ends_at for disaster in self.plan.disasters]
        return max([self.plan.horizon, *ends]) + 0.001

    def _hire(self, slot: str) -> None:
        hiring = next(one for one in self.plan.workers if one.slot == slot)
        self._generations[slot] = self._generations.get(slot, 0) + 1
        process = Process(hiring, generation=self._generations[slot], server=self.server)
        self.staff[slot] = process
        self._all.append(process)
        process.start()

    def _crash(self, client: Client) -> None:
        """Let a client end in the midst of what it does, and another one do what that has not heard the end of."""
        rest = client.kill()
        self._gone.append(client)
        self._successions += 1
        self.loop.call_later(self._random.uniform(*_RESTART), self._succeed, client, rest)

    def _succeed(self, client: Client, rest: Sequence[Action]) -> None:
        self._successions -= 1
        successor = Client(client.slot, generation=client.generation + 1, server=self.server, known=self._known)
        self.clients[self.clients.index(client)] = successor
        successor.begin(rest)

    async def _pass(self, seconds: float) -> None:
        """Let time pass, and replace the workers that have ended meanwhile."""
        end = self.loop.time() + seconds
        while (left := end - self.loop.time()) > 0:
            await self._sleep(min(left, _LOOK))
            for slot, process in self.staff.items():
                if process.is_over and process.missed_at is None:
                    process.missed_at = self.loop.time() + self._random.uniform(*_RESTART)
                if process.missed_at is not None and process.missed_at <= self.loop.time() and not self._is_closing:
                    self._hire(slot)

    async def _sleep(self, seconds: float) -> None:
        moment = self.loop.create_future()
        self.loop.call_later(seconds, moment.set_result, None)
        await moment

    async def _until_quiet(self) -> None:
        end = self.loop.time() + self.plan.recovery
        while self.loop.time() < end:
            if self._is_quiet():
                self.history.quiet_at = self.loop.time()
                return
            await self._pass(_LOOK)

    def _is_quiet(self) -> bool:
        state = self.server.state
        tasks = [state.task(task_id) for task_id in state.records]
        is_over = all(task is None or task.is_terminal for task in tasks)
        is_empty = not state.schedule and not any(queue.depth for queue in state.queues.values())
        return is_over and is_empty and not any(client.open for client in self.clients)

    async def _close(self) -> None:
        self._is_closing = True
        for process in self._all:
            process.request_stop()
        end = self.loop.time() + LONGEST_DRAIN
        while self.loop.time() < end and not all(process.is_over for process in self._all):
            await self._pass(_LOOK)
        self.history.left = [process.name for process in self._all if not process.is_over]
        for client in self._gone:
            client.wire.reset()
        for process in self._all:
            # the server finds out at last who is not there any more
            for wire in process.wires:
                wire.reset()
        self.watcher.close()
        await self._pass(_LOOK)

    def _remains(self) -> Remains:
        state = self.server.state
        waiting, listening = state.waiting, state.events.listeners + state.signals.listeners
        return Remains(
            tasks={task_id: task for task_id in state.records if (task := state.task(task_id)) is not None},
            schedule=tuple(state.schedule),
            entries=tuple(
                Entry(name, priority, entry_id, fields.get("task_id", ""), held.owner if held else None)
                for name, queue in state.queues.items()
                for priority, stream in queue.bands.items()
                for entry_id, fields in stream.entries.items()
                for held in [stream.held.get(entry_id)]
            ),
            letters={entry_id: fields.get("task_id", "") for entry_id, fields in state.letters.entries.items()},
            results={task_id: text for task_id in state.results if (text := state.results.get(task_id)) is not None},
            keys={
                key: record
                for key in state.keys
                if (text := state.keys.get(key)) is not None and (record := key_record(text)) is not None
            },
            sizes={
                "dead letters": (len(state.letters.entries), state.options.dead_letter_limit),
                "audit log": (len(state.audit), MAX_AUDIT),
                "recent tasks": (len(state.recent), MAX_RECENT),
                "waiting readers": (waiting, 0),
                # each client's fan-out lingers for a while
                "listeners": (listening, len(self.clients)),
                "workers that are known": (len(self.server.known_workers()), self._silent_workers()),
                "queues": (len(state.known), len(self.plan.workers)),
            },
            stats={
                QueueName(name): (queue.depth, queue.held, state.scheduled_of(name))
                for name, queue in state.queues.items()
            },
        )

    def _silent_workers(self) -> int:
        """How many workers may be known because they ended without a word, or were heard of once more after it."""
        history = self.history
        ended = {one.who: one.at for one in history.exits if one.how in {"DRAINED", "WORK_LEFT"}}
        in_haste = {"drain_incomplete", "exiting_at_once"}
        said_goodbye = ended.keys() - {notice.who for notice in history.notices if notice.what in in_haste}
        signs = [(call.who.removesuffix("b"), call.at) for call in history.calls if call.method == "announce"]
        # a sign of life that was long under way
        said_goodbye -= {who for who, at in signs if at > ended.get(who, at)}
        return sum(process.name not in said_goodbye for process in self._all)


def run_seed(seed: int, *, mode: Mode = "within") -> History:
    """Run one seed. The same seed gives the same history, in whatever process."""
    plan = plan_of(seed, mode=mode)
    settings = plan.workers[0].settings
    terms = Terms(
        seed=seed,
        is_within_promise=mode == "within",
        is_calm=not plan.disasters,
        concurrency=max(hiring.settings.concurrency for hiring in plan.workers),
        retry=settings.failure_policy.retry,
        visibility=settings.visibility_timeout,
        recovery=plan.recovery,
    )
    history = History(terms=terms)
    # what a killed process leaves behind must not be cleared away at a moment that nobody has chosen
    gc.disable()
    try:
        loop = VirtualLoop(child(seed, "turns").random)  # type: ignore[abstract] # dtq calls none of the rest
        with virtual_threads(loop):
            loop.run_until_complete(System(plan, loop=loop, history=history).run())
            loop.close()
    finally:
        gc.enable()
    return history
