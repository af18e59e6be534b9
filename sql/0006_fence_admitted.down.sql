-- 0006_fence_admitted, undone: what was admitted is forgotten.
--
-- What     Drops fence_admitted with all that it holds. A key that is admitted again later lets in any fence, also a
--          stale one.
-- When     After the last program that calls fence_admit or runs admit.sql has ended.
-- Locks    One write transaction, short.
-- Needs    No extension.
-- Twice    Changes nothing.

drop table if exists fence_admitted;
