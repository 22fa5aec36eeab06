"""The event loop that servers run on: uvloop's where it is installed."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import TypeVar

from dtq.domain.text import class_name

T = TypeVar("T")


def runner() -> asyncio.Runner:
    """Return what runs coroutines on the fastest event loop at hand."""
    return asyncio.Runner(loop_factory=_factory())


def run_on(runner: asyncio.Runner, work: Coroutine[None, None, T], *, on_exit: Callable[[str], None]) -> T:
    """Run *work* to its end, whatever is raised in tasks that handlers have made.

    A SystemExit or KeyboardInterrupt in any task stops the event loop, beside reaching whoever awaits that task, and so
    does a call of its ``stop``. It is started again where it stopped; *on_exit* hears the name of the class or call.
    """
    loop = runner.get_loop()
    whole = loop.create_task(work)
    while True:
        try:
            return loop.run_until_complete(whole)
        except (SystemExit, KeyboardInterrupt) as error:
            if whole.done():
                raise
            on_exit(class_name(error))
        except RuntimeError:
            if whole.done() or loop.is_closed():
                raise
            on_exit("loop.stop")


def spare_what_stays() -> None:
    """Leave what a server has made before its work out of every garbage collection to come.

    It lives as long as its process. Gone through again and again, it costs a tenth of what a request does, and tens of
    milliseconds each time, in which nobody is served.
    """
    gc.collect()
    gc.freeze()


def _factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
