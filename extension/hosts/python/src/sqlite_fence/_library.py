"""The library as a file, and loading it into a connection."""

import os
import sys
from typing import Any

from ._errors import CannotLoad

PURE = "sqlite3_fencepure_init"
"""The entry point that registers the pure functions alone."""


def loadable_path() -> str:
    """The library's path, without the suffix that SQLite adds itself: for `load_extension` and `.load`."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "fence")


def load(connection: Any, *, pure: bool = False) -> None:
    """Loads the functions into this connection, one of `sqlite3`, `apsw` or a module that is made like one of them.

    Every connection that is to have the functions loads them; doing it twice is fine. `pure` leaves out the functions
    that have an effect, for hosts that let strangers write SQL.

    Extensions are allowed for the moment of loading and no longer.
    """
    allow = _method(connection, "enable_load_extension", "enableloadextension")
    allow(True)
    try:
        if pure:
            _run(connection, "select load_extension(?, ?)", loadable_path(), PURE)
        else:
            _method(connection, "load_extension", "loadextension")(loadable_path())
    finally:
        allow(False)


def _method(connection: Any, *names: str) -> Any:
    for name in names:
        method = getattr(connection, name, None)
        if method is not None:
            return method
    kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
    raise CannotLoad(
        f"fence: {kind} has no {names[0]}: give a connection of a sqlite3 module that may load extensions; "
        f"{sys.executable} may be a Python that was built without "
        "--enable-loadable-sqlite-extensions, and apsw and the pysqlite3-binary package always can"
    )


def _run(connection: Any, sql: str, *parameters: str) -> None:
    list(connection.cursor().execute(sql, parameters))
