-- The schema as the migrations make it, for reading. Written by `npm run db:dump`; a test holds it against a freshly
-- migrated database. What is in force are the numbered files in libs/adapters/src/postgres/migrations.

create table onefold.checkpoints (
  name text not null,
  position bigint not null,
  epoch bigint not null default 0,
  constraint checkpoints_pkey PRIMARY KEY (name),
  constraint checkpoints_epoch_check CHECK ((epoch >= 0)),
  constraint checkpoints_name_check CHECK ((length(name) <= 100)),
  constraint checkpoints_position_check CHECK (("position" >= 0))
);
comment on column onefold.checkpoints.epoch is 'Raised by each new leader of the reader; 0 for a reader that has none.';

create table onefold.data_keys (
  operation_id text not null,
  key_id text not null,
  wrapped text not null,
  constraint data_keys_pkey PRIMARY KEY (key_id)
);
CREATE INDEX data_keys_operation ON onefold.data_keys USING btree (operation_id);

create table onefold.due_work (
  operation_id text not null,
  provider text not null,
  due_at_ms bigint not null,
  revision integer not null,
  constraint due_work_pkey PRIMARY KEY (operation_id)
) with (fillfactor=80);
CREATE INDEX due_work_due ON onefold.due_work USING btree (provider, due_at_ms);
comment on column onefold.due_work.due_at_ms is 'Epoch milliseconds of the database''s clock.';
comment on column onefold.due_work.revision is 'Stream revision that the row was derived from; an older event does not overwrite it.';

create table onefold.events (
  position bigint not null,
  id uuid not null,
  revision integer not null,
  stream text not null,
  type text not null,
  data text not null,
  metadata text not null,
  chain bytea not null,
  constraint events_pkey PRIMARY KEY ("position"),
  constraint events_stream_revision_key UNIQUE (stream, revision),
  constraint events_chain_check CHECK ((length(chain) = 32)),
  constraint events_revision_check CHECK ((revision >= 0)),
  constraint events_stream_check CHECK ((length(stream) <= 100)),
  constraint events_type_check CHECK ((length(type) <= 100))
);
comment on column onefold.events.position is 'Place in the whole log, from 1, assigned under the append lock: position order is commit order and has no holes.';
comment on column onefold.events.chain is 'SHA-256 over the previous event of the stream and this row''s own texts; see libs/domain/src/chain.ts.';

create table onefold.migrations (
  number integer not null,
  name text not null,
  applied_at timestamp with time zone not null default now(),
  constraint migrations_pkey PRIMARY KEY (number)
);

create table onefold.operation_view (
  operation_id text collate "C" not null,
  tenant text collate "C" not null,
  revision integer not null,
  position bigint not null,
  status text collate "C" not null,
  action_type text collate "C" not null,
  workflow_id text collate "C",
  updated_at timestamp with time zone not null,
  terms text[] collate "C" not null,
  state text collate "C" not null,
  constraint operation_view_pkey PRIMARY KEY (operation_id)
) with (toast_tuple_target=8160);
CREATE INDEX operation_view_position_idx ON onefold.operation_view USING btree ("position") WHERE (status = 'unknown'::text);
CREATE UNIQUE INDEX operation_view_tenant_position_idx ON onefold.operation_view USING btree (tenant, "position");
CREATE INDEX operation_view_tenant_status_position_idx ON onefold.operation_view USING btree (tenant, status, "position");
CREATE INDEX operation_view_terms_idx ON onefold.operation_view USING gin (terms);
comment on column onefold.operation_view.revision is 'Stream revision of the last event folded in; an older one changes nothing.';
comment on column onefold.operation_view.position is 'Position of the operation''s first event: the order of lists.';
comment on column onefold.operation_view.terms is 'What lists find it by, each as tenant/kind/value: a, the action type; i, an identity value or a provider''s id.';
comment on column onefold.operation_view.state is 'The folded state as JSON, without the payload; sealed parts stay sealed.';

create table onefold.parked_records (
  consumer text not null,
  topic text not null,
  partition integer not null,
  record_offset bigint not null,
  operation_id text,
  reason text not null,
  parked_at timestamp with time zone not null default now(),
  constraint parked_records_pkey PRIMARY KEY (consumer, topic, partition, record_offset),
  constraint parked_records_consumer_check CHECK ((length(consumer) <= 100)),
  constraint parked_records_operation_id_check CHECK ((length(operation_id) <= 100)),
  constraint parked_records_partition_check CHECK ((partition >= 0)),
  constraint parked_records_reason_check CHECK ((length(reason) <= 100)),
  constraint parked_records_record_offset_check CHECK ((record_offset >= 0)),
  constraint parked_records_topic_check CHECK ((length(topic) <= 249))
);
CREATE INDEX parked_records_operation ON onefold.parked_records USING btree (operation_id);
comment on column onefold.parked_records.operation_id is 'The record''s key, where it has the form of one.';
comment on column onefold.parked_records.reason is 'A stable code; see libs/adapters/src/broker/cloud-events.ts.';

create table onefold.secret_fingerprints (
  name text not null,
  fingerprint text not null,
  constraint secret_fingerprints_pkey PRIMARY KEY (name),
  constraint secret_fingerprints_name_check CHECK ((length(name) <= 100))
);

CREATE OR REPLACE FUNCTION onefold.append_events(streams text[], expected integer[], counts integer[], ids text[], types text[], datas text[], metadatas text[], chains text[], key_commands integer[], key_ids text[], key_operations text[], key_wrapped text[])
 RETURNS TABLE(command integer, revision_before integer, first_position bigint, duplicate boolean)
 LANGUAGE plpgsql
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION onefold.now_ms()
 RETURNS bigint
 LANGUAGE sql
AS $function$
  select floor(extract(epoch from clock_timestamp()) * 1000)::bigint + coalesce((
    select split_part(setting, '=', 2)::bigint
    from pg_db_role_setting s cross join unnest(s.setconfig) as setting
    where s.setrole = 0 and s.setdatabase = (select oid from pg_database where datname = current_database())
      and setting like 'onefold.clock\_offset\_ms=%'
  ), nullif(current_setting('onefold.clock_offset_ms', true), '')::bigint, 0)
$function$;
