import json
from time import process_time_ns as now

rows, ours, theirs = args
db = connect()
db.execute("create table t (a text, b text, i integer)")
db.execute(
    """with recursive n(i) as (select 1 union all select i + 1 from n limit ?)
       insert into t select fence_pad(fence_make(1796134800000 + i % 7, i)), fence_pad(fence_make(1796134800003, i)),
                            i * 1000003 from n""",
    (int(rows),),
)
times = ([], [])
for turn in range(20):
    for expression, taken in ((ours, times[0]), (theirs, times[1])):
        begun = now()
        one(db, f"select max({expression}) from t")
        taken.append(now() - begun)
print(json.dumps(times))
