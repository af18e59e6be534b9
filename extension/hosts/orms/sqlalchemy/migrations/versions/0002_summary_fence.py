"""The fence column and its guard."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0002", "0001"

# [guard]
GUARD = "select fence_guard('chats', 'summary_fence', 'write', '[\"summary\"]')"


def upgrade():
    op.add_column("chats", sa.Column("summary_fence", sa.Text, nullable=False, server_default=""))
    op.execute(GUARD)


def downgrade():
    op.execute("select fence_unguard('chats')")
    op.drop_column("chats", "summary_fence")
    # [end]
