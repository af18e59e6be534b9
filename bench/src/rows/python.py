import json, os
from time import perf_counter_ns as now

folder, setup = args
rounds = 50_000
pid = os.getpid()
ours_db = connect(f"{folder}/app.db")
bare = sqlite3.connect(f"{folder}/bare.db", isolation_level=None)
bare.executescript(setup)


def ours():
    (fence,) = ours_db.execute("select fence_acquire(?, 30000)", ("chat:42",)).fetchone()
    ours_db.execute("select fence_release(?, ?)", ("chat:42", fence)).fetchone()


def theirs():
    bare.execute("begin immediate")
    bare.execute("update store set count = count + 1 where id = 1")
    bare.execute(
        "insert into leases values (?, ?, ?, ?, ?, ?, ?) on conflict (key) do update set epoch = excluded.epoch, "
        "count = excluded.count, expires = excluded.expires, ttl = excluded.ttl, delay = excluded.delay, pid = excluded.pid",
        ("chat:42", 1796134800000, 1, 123456789, 30000, 0, pid),
    )
    bare.execute("commit")
    bare.execute("delete from leases where key = ?", ("chat:42",))


times = {"ours": [], "theirs": []}
works = [(ours, times["ours"]), (theirs, times["theirs"])]
for round in range(rounds + rounds // 10):
    for work, taken in works if round % 2 else reversed(works):
        begun = now()
        work()
        ended = now()
        if round >= rounds // 10:
            taken.append(ended - begun)
print(json.dumps(times))
