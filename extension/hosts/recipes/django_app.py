"""Django: every connection, when it is made."""

import sys
import threading

import django
from django.conf import settings

library = sys.argv[1]
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "app.db", "OPTIONS": {"timeout": 20}}}
)

# [how]
from django.db.backends.signals import connection_created
from django.dispatch import receiver


@receiver(connection_created)  # Import this in the ready() of an AppConfig.
def load_fence(connection, **_):
    if connection.vendor == "sqlite":
        connection.connection.enable_load_extension(True)
        connection.connection.load_extension(library)
        connection.connection.enable_load_extension(False)


# [end]
django.setup()
from django.db import connection, models, transaction  # noqa: E402


class Chat(models.Model):
    summary = models.TextField(default="")
    summary_fence = models.TextField(default="")

    class Meta:
        app_label = "app"


def one(sql, *parameters):
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchone()[0]


print("SQLite", one("select sqlite_version()"))
with connection.schema_editor() as editor:
    editor.create_model(Chat)
Chat.objects.create(id=42)

fence = one("select fence_acquire('chat:42', 30000)")
padded = fence.zfill(40)
# The guard in Django's own words: a padded fence is compared as text.
with transaction.atomic():
    assert Chat.objects.filter(id=42, summary_fence__lte=padded).update(summary="a summary", summary_fence=padded) == 1
assert Chat.objects.filter(id=42, summary_fence__lte="7".zfill(40)).update(summary="too late") == 0
assert one("select fence_release('chat:42', %s)", fence) == 1

# A thread of Django has a connection of its own.
fences = []


def turn():
    fence = one("select fence_acquire('turn', 30000, 60000)")
    assert one("select fence_release('turn', %s)", fence) == 1
    fences.append(fence)
    connection.close()


threads = [threading.Thread(target=turn) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(set(fences)) == 8

connection.close()
connection_created.disconnect(load_fence)
try:
    one("select fence_acquire('k')")
except Exception as error:
    print(f"wrong: without the signal: {type(error).__name__}: {error}")
print("ok")
