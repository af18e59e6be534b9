//! The tables on which guards are tried: every kind of key by which one row can take another's place.
//!
//! Statements about them say `:7`, `:8`, `:9` for padded fences. The row 42 of `chats` has fence 8, the row 7 has 3, the
//! row 1 has seen none.

/// The tables. On a SQLite before 3.37 they are [`schema_without_strict`].
pub const SCHEMA: &str = "
create table chats (
  id integer primary key,
  slug text unique,
  room text,
  seat integer,
  email text not null default 'nobody' collate nocase,
  handle text generated always as (substr(email, 1, 3)) virtual,
  open integer,
  topic text,
  extra text,
  summary text,
  summary_fence text not null default '',
  unique (room, seat)
);
create unique index chats_email on chats (email);
create unique index chats_handle on chats (handle);
create unique index chats_topic on chats (topic) where open = 1 and topic is not null;
create unique index chats_lower on chats (lower(slug) collate rtrim);
create unique index chats_extra on chats (replace(extra, ' ', '') || 'x');
insert into chats (id, slug, room, seat, email, open, topic, extra, summary, summary_fence) values
  (42, 'a', 'red', 1, 'ann@x', 1, 'tea', 'k:5', 'later', printf('%040d', 8)),
  (7, 'b', 'red', 2, 'bob@x', 1, 'milk', null, 'early', printf('%040d', 3)),
  (1, 'c', 'red', 3, 'nobody', 0, 'tea', null, 'never', '');
create table source (id integer primary key, summary text, fence text);
insert into source values (42, 'late', printf('%040d', 7));
create table docs (id text, part integer, body text, fence text, primary key (part, id)) without rowid, strict;
insert into docs values ('x', 1, 'later', printf('%040d', 8)), ('z', 1, 'early', printf('%040d', 3));
create table pins (id integer primary key, slug text unique, fence text) strict;
insert into pins values (42, 'a', printf('%040d', 8)), (7, 'c', printf('%040d', 3)), (1, 'n', null);
create table flags (id integer primary key, name text, word text, flag integer, note text not null default 'n', fence text);
create unique index flags_name on flags (name) where flag <> 0;
create unique index flags_word on flags (word) where flag = '1';
insert into flags (id, name, word, flag, fence) values
  (42, 'a', 'w', 1, printf('%040d', 8)), (7, 'b', 'v', 0, printf('%040d', 3)), (1, 'c', 'u', 0, printf('%040d', 8));
create table tags (id integer primary key, tag text collate nocase, word text, low text as (lower(word)), fence text);
create unique index tags_tag on tags (tag collate binary);
create unique index tags_low on tags (low);
insert into tags (id, tag, word, fence) values (42, 'A', 'W', printf('%040d', 8)), (7, 'a', 'v', printf('%040d', 3));
create table \"odd \"\"name\"\" 日本\" (\"select\" text primary key, \"my fence\", \"order\");
insert into \"odd \"\"name\"\" 日本\" values ('x', printf('%040d', 8), 'later'), ('z', printf('%040d', 3), 'early');
create table \"old\" (id integer primary key, \"new\" text unique, \"standing\" text, fence text);
insert into \"old\" values (42, 'a', 'b', printf('%040d', 8)), (7, 'c', 'd', printf('%040d', 3));
create table \"new\" (id integer primary key, \"old\" text unique, fence text);
insert into \"new\" values (42, 'a', printf('%040d', 8)), (7, 'c', printf('%040d', 3));
create table log (line text, fence text);
insert into log (rowid, line, fence) values (5, 'later', printf('%040d', 8));
create table rooms (name text primary key);
insert into rooms values ('red');
create table seats (id integer primary key, room text references rooms on update cascade on delete cascade, fence text);
insert into seats values (1, 'red', printf('%040d', 8));
create view chat_view as select * from chats;
create trigger through_view instead of update on chat_view begin
  update chats set summary = new.summary, summary_fence = new.summary_fence where id = new.id;
end;
create table inbox (chat integer, summary text, fence text);
create trigger through_inbox after insert on inbox begin
  update chats set summary = new.summary, summary_fence = new.fence where id = new.chat;
end;
";

/// The tables without the word that SQLite does not know before 3.37.
pub fn schema_without_strict() -> String {
    SCHEMA.replace(", strict", "").replace(" strict", "")
}

/// Guards of all tables in this mode.
pub fn guards(mode: &str) -> String {
    [
        ("chats", "summary_fence"),
        ("docs", "fence"),
        ("pins", "fence"),
        ("flags", "fence"),
        ("tags", "fence"),
        ("\"odd \"\"name\"\" 日本\"", "my fence"),
        ("old", "fence"),
        ("new", "fence"),
        ("seats", "fence"),
    ]
    .map(|(table, column)| format!("select fence_guard('{table}', '{column}', '{mode}');\n"))
    .concat()
}

/// A statement with fences in place of `:7` and its kin.
pub fn with_fences(statement: &str) -> String {
    [7, 8, 9].iter().fold(statement.to_owned(), |statement, n| {
        statement.replace(&format!(":{n}"), &format!("'{n:040}'"))
    })
}
