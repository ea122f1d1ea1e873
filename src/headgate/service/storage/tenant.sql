-- Events and their matches: one row a group commit. `ids` has 32 bits of each event's id, to find it by: an
-- index of ids would write a page of its own for nearly every event.
CREATE TABLE blocks (
    first INTEGER PRIMARY KEY, last INTEGER NOT NULL, time INTEGER NOT NULL, ids BLOB NOT NULL,
    block BLOB NOT NULL
);
CREATE INDEX blocks_by_time ON blocks (time);

-- `number` is what blocks call a subscription. It is never used again.
CREATE TABLE subscriptions (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, consumer TEXT NOT NULL,
    revision INTEGER NOT NULL, expires INTEGER, body BLOB NOT NULL
);
CREATE INDEX subscriptions_by_consumer ON subscriptions (consumer, id);
CREATE INDEX subscriptions_by_end ON subscriptions (expires) WHERE expires IS NOT NULL;
-- Changes of the index that its newest snapshot does not contain.
CREATE TABLE changes (position INTEGER PRIMARY KEY AUTOINCREMENT, row BLOB NOT NULL);

CREATE TABLE nodes (id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE edges (
    source TEXT NOT NULL, target TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (source, target)
) WITHOUT ROWID;

CREATE TABLE consumers (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, revision INTEGER NOT NULL,
    cursor INTEGER NOT NULL, body BLOB NOT NULL
) WITHOUT ROWID;
-- `again`: it is to be tried once more.
CREATE TABLE dead_letters (
    consumer TEXT NOT NULL, position INTEGER NOT NULL, time INTEGER NOT NULL, attempts INTEGER NOT NULL,
    reason TEXT NOT NULL, again INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (consumer, position)
) WITHOUT ROWID;
CREATE TABLE attempts (
    number INTEGER PRIMARY KEY, consumer TEXT NOT NULL, position INTEGER NOT NULL, time INTEGER NOT NULL,
    status INTEGER, milliseconds INTEGER NOT NULL, reason TEXT
);
CREATE INDEX attempts_by_consumer ON attempts (consumer, number);
-- What was sent to a subscription with a limit and held back in its present period, and held back in all.
CREATE TABLE limits (
    subscription INTEGER PRIMARY KEY, began INTEGER NOT NULL, sent INTEGER NOT NULL, held INTEGER NOT NULL,
    held_in_all INTEGER NOT NULL
);

-- Answers to requests that may be repeated, by their Idempotency-Key.
CREATE TABLE answers (
    key TEXT PRIMARY KEY, request BLOB NOT NULL, time INTEGER NOT NULL, status INTEGER NOT NULL,
    body BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX answers_by_time ON answers (time);
-- Who changed what.
CREATE TABLE audit (
    number INTEGER PRIMARY KEY, time INTEGER NOT NULL, key TEXT NOT NULL, action TEXT NOT NULL, what TEXT
    NOT NULL
);
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
