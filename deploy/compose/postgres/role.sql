-- Run by the image of PostgreSQL, as its superuser, on a new volume only. Row-level security binds no superuser, so
-- the database belongs to an ordinary role. Temporal connects as that role too, and makes its databases: CREATEDB.
\getenv password ORACULO_PASSWORD
CREATE ROLE oraculo LOGIN CREATEDB PASSWORD :'password';
CREATE DATABASE oraculo OWNER oraculo;
