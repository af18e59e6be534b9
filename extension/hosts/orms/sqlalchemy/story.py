"""The database of the story, anew for each part."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent)]

from sqlalchemy import text  # noqa: E402
from sqlalchemy.orm import Session  # noqa: E402

from chats import Base, Chat, connect  # noqa: E402
from telling import SECOND  # noqa: E402

engine = connect()


def fresh(guard=None, seen=SECOND):
    """Two chats; the fence `seen` wrote the first one."""
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    with Session(engine) as session, session.begin():
        session.add_all([Chat(id=42, summary="by another", summary_fence=seen), Chat(id=43)])
        session.flush()
        if guard == "write":
            session.execute(text("select fence_guard('chats', 'summary_fence', 'write', '[\"summary\"]')"))
        elif guard:
            session.execute(text("select fence_guard('chats', 'summary_fence', :mode)"), {"mode": guard})


def summary():
    """The first chat's summary, as it stands in the database."""
    with engine.connect() as db:
        return db.scalar(text("select summary from chats where id = 42"))


def sqlite_version():
    with engine.connect() as db:
        return db.scalar(text("select sqlite_version()"))
