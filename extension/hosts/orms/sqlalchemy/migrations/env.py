"""What Alembic runs for each command: the migrations, on a connection with the functions, and a look at the guards."""

from alembic import context
from sqlalchemy import text

from chats import Base, connect

# [env]
engine = connect(context.config.get_main_option("sqlalchemy.url"))


def is_ours(name, kind, parents):
    """Autogenerate drops what no model describes: not what fence_admit() and a guard with +remember keep."""
    return kind != "table" or name not in ("fence_admitted", "chats_summary_fence_deleted")


def check_the_guards(db):
    lost = "select \"table\", verdict from fence_audit where fence_column = 'summary_fence' and guard <> 'whole'"
    for table, verdict in db.execute(text(lost)):
        raise RuntimeError(f"{table}: {verdict}")


with engine.connect() as db:
    # transactional_ddl: with our `begin` SQLite undoes a CREATE and a DROP as well. All of an upgrade lands or nothing.
    context.configure(
        db, target_metadata=Base.metadata, render_as_batch=True, transactional_ddl=True, include_name=is_ours
    )
    with context.begin_transaction():
        context.run_migrations()
        check_the_guards(db)
# [end]
