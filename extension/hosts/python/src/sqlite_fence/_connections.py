"""Connections of our own to the store, never the caller's.

They are databases in memory: all that they do is call the functions. Each is used by one thread at a time, for as long
as a call lasts, and a call may be a long wait; so there are as many as there are calls at once. The library keeps one
connection to kv.db below all of them.
"""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

from ._library import load

Connect = Callable[[], Any]


class Connections:
    def __init__(self, store: str, connect: Connect) -> None:
        # A path is the same file after a change of folder. What is none is the library's to read.
        self._store = store if re.match("file:|etcds?://", store) else os.path.abspath(store)
        self._connect = connect
        self.forget()

    def forget(self) -> None:
        """After a fork: the parent's connections are left alone, neither used nor closed."""
        self._left = getattr(self, "_idle", [])
        self._mutex = threading.Lock()
        self._idle: list[Any] = []
        self._closed = False

    @contextmanager
    def one(self) -> Iterator[Any]:
        """A connection for one call."""
        connection = self._take()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        with self._mutex:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def ask(self, sql: str, *parameters: object) -> Any:
        """The answer of one call."""
        with self.one() as connection:
            return ask(connection, sql, *parameters)

    def close(self) -> None:
        with self._mutex:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> Any:
        with self._mutex:
            if self._idle:
                return self._idle.pop()
        connection = self._connect()
        load(connection)
        opened = ask(connection, "select fence_open(?)", self._store)
        if self._store.startswith("file:"):
            self._store = str(opened)  # Now it is a path.
        return connection


def ask(connection: Any, sql: str, *parameters: object) -> Any:
    ((answer,),) = list(connection.cursor().execute(sql, parameters))
    return answer
