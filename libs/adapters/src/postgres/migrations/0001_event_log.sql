-- The event log: append-only, positions without holes, one row an event.
create table onefold.events (
  position bigint primary key,
  id       uuid    not null,
  revision integer not null check (revision >= 0),
  stream   text    not null check (length(stream) <= 100),
  type     text    not null check (length(type) <= 100),
  data     text    not null,
  metadata text    not null,
  chain    bytea   not null check (length(chain) = 32),
  -- Event ids need no index of their own: a repeated append is recognised by the ids at its expected revision.
  unique (stream, revision)
);

comment on column onefold.events.position is 'Place in the whole log, from 1, assigned under the append lock: position order is commit order and has no holes.';
comment on column onefold.events.chain is 'SHA-256 over the previous event of the stream and this row''s own texts; see libs/domain/src/chain.ts.';

-- Data keys stand apart from the log, since they are the one thing that may be destroyed.
create table onefold.data_keys (
  operation_id text not null,
  key_id       text not null,
  wrapped      text not null,
  primary key (key_id)
);
create index data_keys_operation on onefold.data_keys (operation_id);

-- The database's time in epoch milliseconds. `alter database ... set onefold.clock_offset_ms = ...` moves it for every process at once
-- without touching the machine's clock. It is read from the catalog first: sessions that are already open would not learn of it
-- otherwise. A server started with the setting moves the clock of all its databases.
create function onefold.now_ms() returns bigint
language sql volatile
as $$
  select floor(extract(epoch from clock_timestamp()) * 1000)::bigint + coalesce((
    select split_part(setting, '=', 2)::bigint
    from pg_db_role_setting s cross join unnest(s.setconfig) as setting
    where s.setrole = 0 and s.setdatabase = (select oid from pg_database where datname = current_database())
      and setting like 'onefold.clock\_offset\_ms=%'
  ), nullif(current_setting('onefold.clock_offset_ms', true), '')::bigint, 0)
$$;

-- Appends many commands at once, each to its own stream and with its own result.
--
-- One call is one statement and one transaction. The lock comes first, so that every later statement of the function sees all that
-- earlier holders committed (read committed, volatile), and it is held until the commit: position order is commit order, and a reader
-- that remembers the last position it has seen can never skip a late commit.
--
-- in:  per command its stream, expected revision (-1: no stream) and number of events; per event, in the same order, its parts;
--      per new data key the number of the command that needs it. A stream may stand in one command only.
-- out: per command: the stream's revision before (-1: none), and the position of its first event when it was written; `duplicate` when
--      these very events already stand behind the expected revision.
create function onefold.append_events(
  streams text[], expected integer[], counts integer[],
  ids text[], types text[], datas text[], metadatas text[], chains text[],
  key_commands integer[], key_ids text[], key_operations text[], key_wrapped text[]
) returns table (command integer, revision_before integer, first_position bigint, duplicate boolean)
language plpgsql volatile
as $$
#variable_conflict use_column
begin
  perform pg_advisory_xact_lock(7239014);
  return query
  with commands as materialized (
    select c.n::integer as n, c.stream, c.expected, c.count, coalesce(h.revision, -1) as head,
           sum(c.count) over (order by c.n) - c.count as first_event
    from unnest(streams, expected, counts) with ordinality as c (stream, expected, count, n)
    left join lateral (
      select e.revision from onefold.events e where e.stream = c.stream order by e.revision desc limit 1
    ) h on true
  ),
  accepted as materialized (
    select n, stream, expected, first_event, count,
           (select coalesce(max(position), 0) from onefold.events) + sum(count) over (order by n) - count + 1 as first_position
    from commands where head = expected
  ),
  given as (
    select g.n - 1 as n, g.id, g.type, g.data, g.metadata, g.chain
    from unnest(ids, types, datas, metadatas, chains) with ordinality as g (id, type, data, metadata, chain, n)
  ),
  written as (
    insert into onefold.events (position, id, revision, stream, type, data, metadata, chain)
    select a.first_position + g.n - a.first_event, g.id::uuid, a.expected + 1 + (g.n - a.first_event)::integer, a.stream,
           g.type, g.data, g.metadata, decode(g.chain, 'hex')
    from accepted a
    join given g on g.n >= a.first_event and g.n < a.first_event + a.count
    order by 1
  ),
  keys as (
    insert into onefold.data_keys (operation_id, key_id, wrapped)
    select k.operation_id, k.key_id, k.wrapped
    from unnest(key_commands, key_ids, key_operations, key_wrapped) as k (command, key_id, operation_id, wrapped)
    join accepted a on a.n = k.command
  )
  select c.n, c.head, a.first_position::bigint,
         a.n is null and (
           select count(*) = c.count
           from given g
           join onefold.events e on e.stream = c.stream and e.revision = c.expected + 1 + (g.n - c.first_event) and e.id = g.id::uuid
           where g.n >= c.first_event and g.n < c.first_event + c.count
         )
  from commands c left join accepted a on a.n = c.n
  order by c.n;
end
$$;
