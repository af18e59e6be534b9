"""The project of the story, and its data anew for each part."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import django  # noqa: E402
from django.conf import settings  # noqa: E402

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "app.db"}},
    INSTALLED_APPS=["chats"],
)
django.setup()

from chats.models import Chat  # noqa: E402
from django.db import connection  # noqa: E402

from telling import SECOND  # noqa: E402


def ask(sql, *parameters):
    """The first value that the statement gives, if it gives any."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return (cursor.fetchone() or [None])[0]


def fresh(guard=None, seen=SECOND):
    """Two chats; the fence `seen` wrote the first one."""
    with connection.schema_editor() as editor:
        if Chat._meta.db_table in connection.introspection.table_names():
            editor.delete_model(Chat)
        editor.create_model(Chat)
    Chat.objects.bulk_create([Chat(id=42, summary="by another", summary_fence=seen), Chat(id=43)])
    if guard and guard.startswith("write"):
        ask("select fence_guard('chats_chat', 'summary_fence', %s, '[\"summary\"]')", guard)
    elif guard:
        ask("select fence_guard('chats_chat', 'summary_fence', %s)", guard)


def summary():
    """The first chat's summary, as it stands in the database."""
    return ask("select summary from chats_chat where id = 42")
