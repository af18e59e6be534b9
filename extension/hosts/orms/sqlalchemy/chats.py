"""The column's type, the model and the engine, as an application has them."""

import sqlite_fence
from sqlalchemy import Text, TypeDecorator, create_engine, event, update
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


# [type]
class Fence(TypeDecorator):
    """A fence: an int here, TEXT of 40 digits in the database. None is '' there: no fence was seen yet."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value, dialect):
        if value is None:
            return ""
        digits = str(value)  # An int, or the text that fence_acquire() gave. A float has lost digits and is refused.
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 40):
            raise ValueError(f"not a fence: {value!r}")
        return digits.zfill(40)

    def process_result_value(self, value, dialect):
        return int(value) if value else None


class Base(DeclarativeBase):
    pass


class Chat(Base):
    __tablename__ = "chats"

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(server_default="")
    summary: Mapped[str] = mapped_column(server_default="")
    summary_fence: Mapped[int | None] = mapped_column(Fence, nullable=False, server_default="")
    # [end]


# [engine]
def connect(url="sqlite:///app.db"):
    engine = create_engine(url)

    @event.listens_for(engine, "connect")
    def load_fence(connection, record):
        sqlite_fence.load(connection)
        connection.isolation_level = None  # The module sqlite3 shall not begin by itself, for it forgets savepoints.

    @event.listens_for(engine, "begin")
    def begin(connection):
        connection.exec_driver_sql("begin")

    return engine
    # [end]


# [save]
def save(chat_id, summary, fence):
    """Changes one row, or none: then a holder that came later has written."""
    mine = (Chat.id == chat_id, Chat.summary_fence < fence)
    return update(Chat).where(*mine).values(summary=summary, summary_fence=fence)
    # [end]
