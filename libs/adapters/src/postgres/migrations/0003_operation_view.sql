-- The status view: one row an operation, folded from the log. Only lists read it, and it can be rebuilt from the log at any time.
--
-- A rebuild makes its table `like operation_view including all` and takes its place by renaming, so everything here has a name that
-- PostgreSQL derives from the table's. Texts are compared byte by byte whatever the database's locale: they are ids, not words.
create table onefold.operation_view (
  operation_id text        collate "C" primary key,
  tenant       text        collate "C" not null,
  revision     integer     not null,
  position     bigint      not null,
  status       text        collate "C" not null,
  action_type  text        collate "C" not null,
  workflow_id  text        collate "C",
  updated_at   timestamptz not null,
  terms        text[]      collate "C" not null,
  state        text        collate "C" not null
-- A row is 1-2 kB, and lists read it whole: kept in one piece up to a page, and never compressed on the way to that.
) with (toast_tuple_target = 8160);

comment on column onefold.operation_view.revision is 'Stream revision of the last event folded in; an older one changes nothing.';
comment on column onefold.operation_view.position is 'Position of the operation''s first event: the order of lists.';
comment on column onefold.operation_view.terms is 'What lists find it by, each as tenant/kind/value: a, the action type; i, an identity value or a provider''s id.';
comment on column onefold.operation_view.state is 'The folded state as JSON, without the payload; sealed parts stay sealed.';

-- Why these indexes. Processor time of the server for one operation (written once, 64 to a statement, random keys, 1.9 kB rows; the
-- differences count, since machines differ), and the same with a million rows:
--
--   this table with its key and the two orders             19 us    24 us
--   terms as a GIN index (what is below)                   31       53
--   terms as a table of their own, 5 narrow rows           40       82    and as a unique one 54
--   terms as such a table of 64-bit hashes                 38        -
--   one more index by action type / by workflow          + 1.5 / + 11     both are terms instead
--   (tenant, status, position) for open ones only        - 0 (within the noise): all, so that every status is quick to list
--   fillfactor 90, 70, 50 for updates within the page      no gain: the status is indexed, and most rows are written once
--
-- Lists of 20 among a million took 0.3 to 4 ms, whatever they filtered by.
create unique index on onefold.operation_view (tenant, position);
create index on onefold.operation_view (tenant, status, position);
create index on onefold.operation_view using gin (terms);
