-- A sweep may compare a part of the key space at a time. Where the next one begins, and in how many parts the rest is
-- compared; null: at the beginning.
ALTER TABLE etl.follow_state ADD COLUMN sweep_next jsonb CHECK (jsonb_typeof(sweep_next) = 'object');
