"""The locks and semaphores of one store, and `hold`, which does the whole of it: waits, takes, renews, releases."""

import json
import os
import sqlite3
import threading
import weakref
from types import TracebackType
from typing import Any, Callable, Generic, Optional, TypeVar, Union

from ._connections import Connect, Connections, ask
from ._errors import FenceError, Held
from ._held import HeldThing, Lease, Permit, now
from ._renewer import Renewer
from ._taking import in_thread, wait, wait_async

H = TypeVar("H", bound=HeldThing)

TTL_MS = 30_000
"""How long a lease lasts without renewal, unless said otherwise."""
WAIT_MS = 30_000
"""How long a hold waits, unless said otherwise: as long as a lease lasts whose holder has died."""

_all: "weakref.WeakSet[Locks]" = weakref.WeakSet()


def _connect() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


class Locks:
    """The locks and semaphores of the store at this path, or at this location of a cluster.

    `connect` makes a connection to a database in memory, and only those who use another module than `sqlite3` need it:
    a process must use one SQLite library, so it is the module that your own database is opened with.

        Locks("kv.db", connect=lambda: apsw.Connection(":memory:"))

    A `Locks` may be shared by threads, and goes on working in a process that is forked. `close` closes its connections.
    """

    def __init__(self, store: Union[str, "os.PathLike[str]"], *, connect: Connect = _connect) -> None:
        path = os.fspath(store)
        if path in ("", ":memory:"):
            raise FenceError(f"fence: {path!r} is no file that could be shared: give the path of a store, such as kv.db")
        self._connections = Connections(path, connect)
        self._renewer = Renewer(self._connections)
        _all.add(self)

    def lock(
        self, name: str, *, ttl_ms: int = TTL_MS, wait_ms: int = WAIT_MS, delay_ms: int = 0, bound: bool = False
    ) -> "Lock":
        """The lock of this name. The key that is taken is the name, a colon and the key that is given to `hold`.

        `ttl_ms` is how long a lease lasts without renewal, `wait_ms` how long `hold` waits, `delay_ms` how long the key
        stays closed after a lease that ended without release; a `bound` lease ends at once when this process ends.
        """
        return Lock(self, name, ttl_ms, wait_ms, _options(delay_ms=delay_ms or None, bound=bound or None))

    def semaphore(
        self, key: str, limit: int, *, ttl_ms: int = TTL_MS, wait_ms: int = WAIT_MS, bound: bool = False
    ) -> "Semaphore":
        """The semaphore of this key, of which at most `limit` permits are live."""
        return Semaphore(self, key, limit, ttl_ms, wait_ms, _options(bound=bound or None))

    def close(self) -> None:
        """Closes the connections. What is still held is not renewed any more, and ends with its ttl."""
        self._renewer.let_all_go()
        self._connections.close()

    def __enter__(self) -> "Locks":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _forget(self) -> None:
        self._connections.forget()
        self._renewer.forget()


class Lock:
    """A named family of keys. Made by `Locks.lock`."""

    def __init__(self, locks: Locks, name: str, ttl_ms: int, wait_ms: int, options: str) -> None:
        self._locks = locks
        self._name = name
        self._ttl_ms = ttl_ms
        self._wait_ms = wait_ms
        self._options = options

    def hold(self, key: Union[str, int], *, wait_ms: Optional[int] = None) -> "Hold[Lease]":
        """Takes the key for the length of a `with` or `async with`, renews it meanwhile, releases it at the end.

        Entering raises `Held` when the wait was over. Leaving raises `LeaseLost` when the lease had ended before the
        work, unless the work raised something itself.
        """
        full = f"{self._name}:{key}"
        return Hold(
            self._locks,
            lambda name: Lease(full, name, self._ttl_ms),
            full,
            "select fence_acquire(?, ?, ?, ?)",
            (full, self._ttl_ms),
            self._wait_ms if wait_ms is None else wait_ms,
            self._options,
        )


class Semaphore:
    """A number of permits of one key. Made by `Locks.semaphore`."""

    def __init__(self, locks: Locks, key: str, limit: int, ttl_ms: int, wait_ms: int, options: str) -> None:
        self._locks = locks
        self._key = key
        self._limit = limit
        self._ttl_ms = ttl_ms
        self._wait_ms = wait_ms
        self._options = options

    def hold(self, *, wait_ms: Optional[int] = None) -> "Hold[Permit]":
        """Takes a permit as `Lock.hold` takes a key. Leaving raises `PermitLost` when it had ended before the work."""
        return Hold(
            self._locks,
            lambda name: Permit(self._key, name, self._ttl_ms),
            self._key,
            "select semaphore_acquire(?, ?, ?, ?, ?)",
            (self._key, self._limit, self._ttl_ms),
            self._wait_ms if wait_ms is None else wait_ms,
            self._options,
        )


class Hold(Generic[H]):
    """One hold, for one `with` or `async with`."""

    def __init__(
        self,
        locks: Locks,
        make: Callable[[str], H],
        key: str,
        sql: str,
        parameters: "tuple[object, ...]",
        wait_ms: int,
        options: str,
    ) -> None:
        self._locks = locks
        self._make = make
        self._key = key
        self._sql = sql
        self._parameters = parameters
        self._wait_ms = wait_ms
        self._options = options
        self._held: Optional[H] = None
        self._asking: Optional[Any] = None
        self._interrupting = threading.Lock()

    def __enter__(self) -> H:
        # At once, if it is free. Else it is waited for in a thread, where Ctrl-C need not reach.
        held = self._take(0)
        if held is None and self._wait_ms > 0:
            held = wait(in_thread(lambda: self._take(self._wait_ms), self._give_back), self._give_back, self._interrupt)
        return self._begin(held)

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        _raise(self._finish(), error)

    async def __aenter__(self) -> H:
        taken = in_thread(lambda: self._take(self._wait_ms), self._give_back)
        return self._begin(await wait_async(taken, self._give_back, self._interrupt))

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        # Releasing goes on in its thread if this task is cancelled.
        _raise(await wait_async(in_thread(self._finish, _nothing), _nothing, lambda: None), error)

    def _take(self, wait_ms: int) -> Optional[H]:
        with self._locks._connections.one() as connection:
            asked_at = now()
            self._asking = connection
            try:
                name = ask(connection, self._sql, *self._parameters, wait_ms, self._options)
            finally:
                with self._interrupting:  # The next one to use this connection is not to be interrupted.
                    self._asking = None
            if name is None:
                return None
            held = self._make(name)
            held.live_from(asked_at)
            if wait_ms > 0:
                # When in the wait it was granted, only the store knows; a renewal counts from now.
                renewed_at = now()
                if ask(connection, held.renew_sql, *held.renewal):
                    held.live_from(renewed_at)
                else:
                    held.lose()
            return held

    def _interrupt(self) -> None:
        """Ends the wait that goes on in another thread."""
        with self._interrupting:
            if self._asking is not None:
                self._asking.interrupt()

    def _begin(self, held: Optional[H]) -> H:
        if held is None:
            raise Held(
                f"fence: {self._key!r} is held by somebody else, after waiting {self._wait_ms} ms: "
                "wait longer, or try again later"
            )
        self._held = held
        self._locks._renewer.keep(held)
        return held

    def _finish(self) -> Optional[FenceError]:
        """Gives it back; an error if it had ended before the work."""
        held, self._held = self._held, None
        if held is None or not held.is_ours:
            return None  # The parent's, in a process that was forked meanwhile.
        self._locks._renewer.let_go(held)
        lost = held.lost
        return None if self._give_back(held) and not lost else held.lost_error()

    def _give_back(self, held: Optional[H]) -> bool:
        """Whether it was still there. Where the store cannot be asked, it ends with its ttl, and the clock answers."""
        if held is None:
            return False
        try:
            return bool(self._locks._connections.ask(held.release_sql, *held.releasing))
        except Exception:
            return not held.lost


def _options(**given: object) -> str:
    return json.dumps({name: value for name, value in given.items() if value is not None})


def _raise(lost: Optional[FenceError], error: Optional[BaseException]) -> None:
    """The work's own exception goes first."""
    if lost is not None and error is None:
        raise lost


def _nothing(_: object) -> None:
    pass


def _forget_the_parent() -> None:
    for locks in list(_all):
        locks._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_the_parent)
