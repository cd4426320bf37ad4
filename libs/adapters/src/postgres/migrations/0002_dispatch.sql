-- Where a reader of the log stands: the last position it has finished.
create table onefold.checkpoints (
  name     text   primary key check (length(name) <= 100),
  position bigint not null check (position >= 0)
);

-- What a dispatcher has to look at, and when. Derived from the log: rows suggest, streams decide.
create table onefold.due_work (
  operation_id text    primary key,
  provider     text    not null,
  due_at_ms    bigint  not null,
  revision     integer not null
) with (fillfactor = 80);
create index due_work_due on onefold.due_work (provider, due_at_ms);

comment on column onefold.due_work.due_at_ms is 'Epoch milliseconds of the database''s clock.';
comment on column onefold.due_work.revision is 'Stream revision that the row was derived from; an older event does not overwrite it.';

-- Which secrets this database was made with, as keyed fingerprints: a process with other ones would split identities or seal with a key
-- that nobody else has.
create table onefold.secret_fingerprints (
  name        text primary key check (length(name) <= 100),
  fingerprint text not null
);
