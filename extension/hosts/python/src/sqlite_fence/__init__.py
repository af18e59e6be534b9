"""Leases with fences for SQLite: a lock whose late holder is refused.

A lock with a lease keeps two workers apart, until one of them stands still for longer than its lease and then writes as
if nothing had happened. Here every lease carries a fence, a number that only grows, and the row that is written refuses
a writer whose fence is older than what it has seen.

    from sqlite_fence import Locks

    summaries = Locks("kv.db").lock("summaries")

    with summaries.hold(chat_id) as lease:
        summary = summarize(chat_id)
        db.execute(
            "update chats set summary = ?, summary_fence = ? where id = ? and summary_fence < ?",
            (summary, lease.padded, chat_id, lease.padded),
        )

`async with summaries.hold(chat_id) as lease:` is the same for asyncio, and never blocks the event loop.

| name | |
|---|---|
| `Locks` | the locks and semaphores of one store; the place to begin |
| `Lock`, `Semaphore` | a named family of keys, and a number of permits; `hold` takes one |
| `Lease`, `Permit` | what is held inside a `with` |
| `load`, `loadable_path` | the SQL functions, for a connection of yours |
| `FenceError` | what this package raises itself: `LeaseLost`, `PermitLost`, `Held`, `CannotLoad` |

The rules are in the library, which this package carries; trouble with the store is raised as the error of the SQLite
module that reports it (`sqlite3.OperationalError`), with the library's message.
"""

from ._errors import CannotLoad, FenceError, Held, LeaseLost, PermitLost
from ._held import Lease, Permit
from ._library import load, loadable_path
from ._locks import Hold, Lock, Locks, Semaphore

__all__ = [
    "CannotLoad",
    "FenceError",
    "Held",
    "Hold",
    "Lease",
    "LeaseLost",
    "Lock",
    "Locks",
    "Permit",
    "PermitLost",
    "Semaphore",
    "load",
    "loadable_path",
]
