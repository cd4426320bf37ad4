-- How long the oldest operation has been in doubt is asked every few seconds; those in doubt are few among all.
create index on onefold.operation_view (position) where status = 'unknown';
