"""Renewing in the background: one thread for all that is held of one store, at a third of each ttl.

The thread is there while something is held. A call into the store holds no mutex of ours: who begins or ends a hold
never waits for it.
"""

import threading
from typing import Optional

from ._connections import Connections
from ._held import HeldThing, now

SHORTEST = 0.001
"""The shortest pause between two renewals, in seconds, so that a ttl of a few milliseconds does not spin."""


class Renewer:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.forget()

    def forget(self) -> None:
        """After a fork: nothing is held here, and the thread stayed with the parent."""
        self._changed = threading.Condition()
        self._due: dict[HeldThing, float] = {}
        self._running = False

    def keep(self, held: HeldThing) -> None:
        with self._changed:
            self._due[held] = now() + _third(held)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="fence-renew", daemon=True).start()
            self._changed.notify()

    def let_go(self, held: HeldThing) -> None:
        with self._changed:
            self._due.pop(held, None)
            self._changed.notify()

    def let_all_go(self) -> None:
        with self._changed:
            self._due.clear()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            held = self._next()
            if held is None:
                return
            pause = self._renew(held)
            with self._changed:
                if held in self._due:
                    if pause is None:
                        del self._due[held]
                    else:
                        self._due[held] = now() + pause

    def _next(self) -> Optional[HeldThing]:
        """Waits for what is due next; nothing when nothing is held any more, and then the thread ends."""
        with self._changed:
            while self._due:
                held, due = min(self._due.items(), key=lambda item: item[1])
                pause = due - now()
                if pause <= 0:
                    return held
                self._changed.wait(pause)
            self._running = False
            return None

    def _renew(self, held: HeldThing) -> Optional[float]:
        """In how many seconds to renew it again; nothing if it is lost."""
        asked_at = now()
        try:
            renewed = self._connections.ask(held.renew_sql, *held.renewal)
        except Exception:
            # Trouble with the store may pass before the ttl does.
            if not held.lost:
                return max(_third(held) / 8, SHORTEST)
            renewed = False
        if renewed:
            held.live_from(asked_at)
            return _third(held)
        held.lose()
        return None


def _third(held: HeldThing) -> float:
    return max(held.ttl / 3, SHORTEST)
