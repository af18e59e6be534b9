-- Admits a fence for a key, or refuses it: the plain-SQL form of fence_admit. Run it in the transaction that does the
-- work that it stands for: a ROLLBACK takes both back. Needs 0006_fence_admitted.sql, SQLite 3.24 or newer, and no
-- extension.
--
-- :key     what is written to: a file, an object, a route of a service
-- :fence   the fence of the writer's lease as 40 digits: fence_pad(f)
--
-- changes() = 1   admitted: no larger fence was seen for this key
-- changes() = 0   refused: a later holder was here. This lease is over; do not do the work

insert into fence_admitted (key, fence) values (:key, :fence)
on conflict (key) do update set fence = excluded.fence where excluded.fence >= fence;
