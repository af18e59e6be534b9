# The sqlite3 shell.
set -eu
library=$1
fail() { echo "failed: $*" >&2 && exit 1; }
shell() { sqlite3 -batch -init /dev/null "$@" 2>&1; }

shell app.db "create table chats (id integer primary key, summary text, summary_fence text not null default '');
              insert into chats (id) values (42);"
echo "SQLite $(shell :memory: 'select sqlite_version()')"

# [how]
fence=$(sqlite3 app.db -cmd ".load $library" "select fence_acquire('chat:42', 30000)")
changes=$(sqlite3 app.db -cmd ".load $library" "
  update chats set summary = 'a summary', summary_fence = fence_pad('$fence')
   where id = 42 and fence_ok(summary_fence, '$fence');
  select changes();
  select fence_release('chat:42', '$fence');")
# [end]
[ "$changes" = "1
1" ] || fail "$changes"

# Eight shells at once, each with a lease of its own in its turn.
for i in 1 2 3 4 5 6 7 8; do
  shell app.db -cmd ".load $library" "select fence from fence_acquire('turn', 5, 60000)" >"fence.$i" &
done
wait
[ "$(cat fence.? | sort -u | grep -c '^[0-9]*$')" = 8 ] || fail "not eight fences: $(cat fence.?)"

echo "wrong: without .load: $(shell :memory: "select fence_acquire('k')" | head -n 1)"
echo "wrong: a path that is none: $(shell :memory: '.load ./no/fence')"
echo "wrong: a fence typed without quotes, that SQLite reads as a REAL: $(
  shell :memory: -cmd ".load $library" "select fence_pad(33132838977483490749893836800001)"
)"
echo ok
