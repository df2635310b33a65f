-- The JSON Schemas that workers declared for the parameters of their queues.
CREATE TABLE parameter_schemas (
  queue text COLLATE "C" PRIMARY KEY,
  body  text NOT NULL,
  at    bigint NOT NULL
);
