# sqlite-utils, with the Python package installed beside it: nothing to configure.
set -eu
fail() { echo "failed: $*" >&2 && exit 1; }
utils() { "$PYTHON" -m sqlite_utils "$@"; }

echo "SQLite $("$PYTHON" -c 'import sqlite3; print(sqlite3.sqlite_version)')"
# [how]
# pip install sqlite-fence sqlite-utils
# sqlite-utils query app.db "select fence_pad(summary_fence) from chats"
# [end]
utils plugins | grep -q sqlite-fence || fail "the plugin is not listed"
[ "$(utils memory --raw "select fence_pad('7')" 'select 1' 2>/dev/null || utils query :memory: --raw "select fence_pad('7')")" \
  = 0000000000000000000000000000000000000007 ] || fail "no fence_pad"
message=$(utils query :memory: "select fence_acquire('k')" 2>&1 | head -n 1) || true
echo "wrong: asking for a lease without loading the library: $message"
# Who wants the rest loads the library.
[ -n "$(utils query app.db --raw "select fence_acquire('k')" --load-extension "$1")" ] || fail "no lease"
echo ok
