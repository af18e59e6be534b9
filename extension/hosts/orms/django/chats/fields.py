"""A model field for fences."""

from django.db import models


# [field]
class FenceField(models.TextField):
    """A fence: an int here, TEXT of 40 digits in the database. None is '' there: no fence was seen yet."""

    def __init__(self, **options):
        super().__init__(**{"blank": True, "default": None, "db_default": "", **options})

    def from_db_value(self, value, expression, connection):
        return self.to_python(value)

    def to_python(self, value):
        return int(value) if value else None

    def get_prep_value(self, value):
        if value in (None, ""):
            return value
        digits = str(value)  # An int, or the text that fence_acquire() gave. A float has lost digits and is refused.
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 40):
            raise ValueError(f"not a fence: {value!r}")
        return digits.zfill(40)

    def get_db_prep_save(self, value, connection):
        return super().get_db_prep_save("" if value is None else value, connection)
        # [end]
