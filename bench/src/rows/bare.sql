-- The pragmas of a store: pages of this size, and a checkpoint at this length of the WAL.
pragma page_size = 1024;
pragma journal_mode = wal;
pragma synchronous = normal;
pragma wal_autocheckpoint = 10000;

create table store (
    id    integer primary key,
    epoch integer not null,
    count integer not null
);
create table leases (
    key     text primary key,
    epoch   integer not null,
    count   integer not null,
    expires integer not null,
    ttl     integer not null,
    delay   integer not null,
    pid     integer not null
) without rowid;
insert into store values (1, 1796134800000, 0);
