# Datasette, with the Python package installed beside it: nothing to configure.
set -eu
fail() { echo "failed: $*" >&2 && exit 1; }
ask() { "$PYTHON" -m datasette app.db --get "/app.json?_shape=arrayfirst&sql=$1" 2>/dev/null; }

"$PYTHON" -c "import sqlite3; sqlite3.connect('app.db').execute('create table chats (id integer primary key)')"
echo "SQLite $("$PYTHON" -c 'import sqlite3; print(sqlite3.sqlite_version)')"

# [how]
# pip install sqlite-fence datasette
# datasette app.db
# [end]
"$PYTHON" -m datasette plugins --all | grep -q '"name": "sqlite-fence"' || fail "the plugin is not listed"
[ "$(ask "select+fence_ok('9','10')")" = "[1]" ] || fail "$(ask "select+fence_ok('9','10')")"
message=$("$PYTHON" -m datasette app.db --get "/app.json?sql=select+fence_acquire('k')" 2>/dev/null |
  "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["error"])') || true
case $message in "no such function: fence_acquire"*) ;; *) fail "strangers may acquire: $message" ;; esac
echo "wrong: asking for a lease, which strangers must not get: $message"
[ ! -e kv.db ] || fail "a store was opened"
echo ok
