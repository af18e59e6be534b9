"""Work in a thread of its own whose answer may no longer be wanted when it comes.

A wait for a key blocks inside SQLite, where neither Ctrl-C nor asyncio reaches it. So it waits in a thread, and who no
longer wants the key interrupts it: it leaves the line, and what was granted at the last moment is given back.
"""

import asyncio
import threading
from concurrent.futures import Future, InvalidStateError
from typing import Callable, TypeVar

T = TypeVar("T")


def in_thread(work: Callable[[], T], undo: Callable[[T], object]) -> "Future[T]":
    """Does the work in a thread. If nobody wants its answer any more, the answer is undone."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            answer = work()
        except BaseException as error:
            _set(lambda: future.set_exception(error))
        else:
            if not _set(lambda: future.set_result(answer)):
                undo(answer)

    threading.Thread(target=run, name="fence-wait", daemon=True).start()
    return future


def wait(future: "Future[T]", undo: Callable[[T], object], interrupt: Callable[[], object]) -> T:
    """The answer; given up if waiting ends in an exception such as KeyboardInterrupt."""
    try:
        return future.result()
    except BaseException:
        _abandon(future, undo, interrupt)
        raise


async def wait_async(future: "Future[T]", undo: Callable[[T], object], interrupt: Callable[[], object]) -> T:
    """The same without blocking the event loop; given up if the task is cancelled."""
    try:
        return await asyncio.wrap_future(future)
    except BaseException:
        _abandon(future, undo, interrupt)
        raise


def _abandon(future: "Future[T]", undo: Callable[[T], object], interrupt: Callable[[], object]) -> None:
    if future.cancel() or future.cancelled():
        interrupt()
    elif future.exception() is None:
        # It was answered at the last moment.
        answer = future.result()
        in_thread(lambda: undo(answer), lambda _: None)


def _set(setter: Callable[[], None]) -> bool:
    """Whether somebody still wanted the answer."""
    try:
        setter()
    except InvalidStateError:
        return False
    return True
