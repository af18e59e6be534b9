"""The model, and the statement that saves a summary."""

from django.db import models

from .fields import FenceField


# [model]
class Chat(models.Model):
    title = models.TextField(default="", db_default="")
    summary = models.TextField(default="", db_default="")
    summary_fence = FenceField()


def save(chat_id, summary, fence):
    """Changes one row, or none: then a holder that came later has written."""
    mine = Chat.objects.filter(pk=chat_id, summary_fence__lt=fence)
    return mine.update(summary=summary, summary_fence=fence)
    # [end]
