-- The relay's fence: whoever wins the leadership raises the epoch, and only the holder of the newest one moves the checkpoint.
alter table onefold.checkpoints add column epoch bigint not null default 0 check (epoch >= 0);

comment on column onefold.checkpoints.epoch is 'Raised by each new leader of the reader; 0 for a reader that has none.';

-- Records that a consumer could not take: set aside in the parked topic, so that the others go on, and listed here for people.
create table onefold.parked_records (
  consumer      text        not null check (length(consumer) <= 100),
  topic         text        not null check (length(topic) <= 249),
  partition     integer     not null check (partition >= 0),
  record_offset bigint      not null check (record_offset >= 0),
  operation_id  text        check (length(operation_id) <= 100),
  reason        text        not null check (length(reason) <= 100),
  parked_at     timestamptz not null default now(),
  primary key (consumer, topic, partition, record_offset)
);
create index parked_records_operation on onefold.parked_records (operation_id);

comment on column onefold.parked_records.operation_id is 'The record''s key, where it has the form of one.';
comment on column onefold.parked_records.reason is 'A stable code; see libs/adapters/src/broker/cloud-events.ts.';

-- What is folded of an operation has grown (the attempts answered with a server error): the view is folded anew from the log.
truncate onefold.operation_view;
delete from onefold.checkpoints where name = 'operation-view';
