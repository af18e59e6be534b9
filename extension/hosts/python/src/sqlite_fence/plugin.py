"""The plugin of Datasette and of sqlite-utils: the pure functions in each of their connections.

Strangers write SQL there. The functions that have an effect are left out: who may read a page must not take leases.
"""

from typing import Any

from pluggy import HookimplMarker  # Both hosts stand on it, so it is there wherever this is imported.

from ._library import load


@HookimplMarker("datasette")
@HookimplMarker("sqlite_utils")
def prepare_connection(conn: Any) -> None:
    load(conn, pure=True)
