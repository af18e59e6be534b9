"""A title is never NULL: Alembic builds the table anew for that, and so the guard is installed again."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0003", "0002"

# [again]
GUARD = "select fence_guard('chats', 'summary_fence', 'write', '[\"summary\"]')"


def upgrade():
    with op.batch_alter_table("chats") as chats:
        chats.alter_column("title", existing_type=sa.String, nullable=False, server_default="")
    op.execute(GUARD)
    # [end]


def downgrade():
    with op.batch_alter_table("chats") as chats:
        chats.alter_column("title", existing_type=sa.String, nullable=True, server_default=None)
    op.execute(GUARD)
