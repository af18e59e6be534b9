-- The application of the demo, as its migrations 0001 to 0003 would have left it: chats, each with a summary.
create table chats (
  id integer primary key,
  summary text not null default ''
);
insert into chats (id, summary) values (42, 'nobody wrote yet');
