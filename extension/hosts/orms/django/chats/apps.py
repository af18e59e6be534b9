"""What Django runs when it starts: each connection gets the functions, and each `migrate` ends with whole guards."""

import sqlite_fence
from django.apps import AppConfig
from django.db import connections
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate


# [app]
class ChatsConfig(AppConfig):
    name = "chats"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self):
        connection_created.connect(load_fence)
        post_migrate.connect(guard, sender=self)


def load_fence(connection, **_):
    if connection.vendor == "sqlite":
        sqlite_fence.load(connection.connection)


def guard(apps, using, **_):
    """After each `migrate`, also that of the test database. If the guard is there, it changes nothing."""
    fields = {field.name for field in apps.get_model("chats", "Chat")._meta.fields}
    if "summary_fence" in fields:  # Not yet, or no longer, when one migrates to a state before it.
        with connections[using].cursor() as cursor:
            cursor.execute("select fence_guard('chats_chat', 'summary_fence', 'write', '[\"summary\"]')")
            # [end]
