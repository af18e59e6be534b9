"""What is held: a lease or a permit, live until it is let go or lost.

It is lost when the store says that it is over, or when its ttl has passed since the last renewal that worked. Lost it
stays: it is never renewed into a new one. Who asks is answered by the clock too, so a process that stood still learns
it at its first question.
"""

import os
import time
from typing import ClassVar

from ._errors import FenceError, LeaseLost, PermitLost

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)


def now() -> float:
    """Seconds, of a clock that nobody can step; on Linux it goes on while the machine sleeps, as the store's does."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)


class HeldThing:
    """What a lease and a permit have in common."""

    renew_sql: ClassVar[str]
    release_sql: ClassVar[str]

    def __init__(self, key: str, name: str, ttl_ms: int) -> None:
        self._key = key
        self._name = name
        self._ttl_ms = ttl_ms
        self._process = os.getpid()
        self._live_until = float("-inf")
        self._lost = False

    @property
    def key(self) -> str:
        """The key that is held, with the lock's name."""
        return self._key

    @property
    def lost(self) -> bool:
        """Whether it has ended before the work. A fence refuses what is written late; this saves the effort."""
        return self._lost or now() >= self._live_until or not self.is_ours

    def check(self) -> None:
        """Raises if it is lost."""
        if self.lost:
            raise self.lost_error()

    @property
    def is_ours(self) -> bool:
        """False in a process that was forked meanwhile: what is held is the parent's."""
        return self._process == os.getpid()

    @property
    def ttl(self) -> float:
        """Its time to live, in seconds."""
        return self._ttl_ms / 1000

    @property
    def renewal(self) -> tuple[str, str, int]:
        return self._key, self._name, self._ttl_ms

    @property
    def releasing(self) -> tuple[str, str]:
        return self._key, self._name

    def live_from(self, asked_at: float) -> None:
        """It was granted or renewed, at `asked_at` or later."""
        self._live_until = asked_at + self.ttl

    def lose(self) -> None:
        self._lost = True

    def lost_error(self) -> FenceError:
        raise NotImplementedError


class Lease(HeldThing):
    """A key held, with its fence: write it with everything that is written under the lease."""

    renew_sql = "select fence_renew(?, ?, ?)"
    release_sql = "select fence_release(?, ?)"

    @property
    def fence(self) -> int:
        """The fence as a number. SQLite's integers do not hold it: write `padded`."""
        return int(self._name)

    @property
    def wire(self) -> str:
        """The fence as plain decimal text."""
        return self._name

    @property
    def padded(self) -> str:
        """The fence as 40 digits, so that text order is number order: for a TEXT column."""
        return self._name.zfill(40)

    def lost_error(self) -> FenceError:
        return LeaseLost(
            f"fence: the lease of {self._key!r} with fence {self._name} was lost before its holder was done: "
            "whatever it wrote late was refused if it was written with the fence"
        )

    def __repr__(self) -> str:
        return f"<Lease {self._key!r} fence={self._name}{' lost' if self.lost else ''}>"


class Permit(HeldThing):
    """One of a semaphore's permits. It has no fence: three valid holders at once would refuse each other's writes."""

    renew_sql = "select semaphore_renew(?, ?, ?)"
    release_sql = "select semaphore_release(?, ?)"

    @property
    def id(self) -> str:
        """The permit's id, text that is no number."""
        return self._name

    def lost_error(self) -> FenceError:
        return PermitLost(f"fence: the permit {self._name} of {self._key!r} was lost before its holder was done")

    def __repr__(self) -> str:
        return f"<Permit {self._key!r} id={self._name}{' lost' if self.lost else ''}>"
