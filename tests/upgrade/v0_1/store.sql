--
-- PostgreSQL database dump
--

\restrict 4mrY7aGCvOk5gTzHiriFhheRHMphcipkgaStN8d3z3lewhvcaTycnhGJCelAWjf

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: oraculo_exactly(bigint, bigint); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.oraculo_exactly(written bigint, wanted bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF written <> wanted THEN
    RAISE EXCEPTION '% of % rows were written: another process changed an orchestration', written, wanted;
  END IF;
END $$;


--
-- Name: oraculo_now(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.oraculo_now() RETURNS bigint
    LANGUAGE sql
    AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: counters; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.counters (
    queue text NOT NULL COLLATE pg_catalog."C",
    verdict text NOT NULL COLLATE pg_catalog."C",
    count bigint NOT NULL
)
WITH (fillfactor='50');


--
-- Name: cursors; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.cursors (
    name text NOT NULL COLLATE pg_catalog."C",
    "position" bigint NOT NULL,
    epoch bigint
)
WITH (fillfactor='50');


--
-- Name: dead_letters; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.dead_letters (
    id bigint NOT NULL,
    queue text NOT NULL COLLATE pg_catalog."C",
    reason text NOT NULL COLLATE pg_catalog."C",
    detail text NOT NULL,
    correlation_id text,
    headers text NOT NULL,
    body bytea NOT NULL,
    at bigint NOT NULL
);


--
-- Name: dead_letters_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.dead_letters_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: dead_letters_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.dead_letters_id_seq OWNED BY public.dead_letters.id;


--
-- Name: duties; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.duties (
    name text NOT NULL COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    note text DEFAULT ''::text NOT NULL
)
WITH (fillfactor='50');


--
-- Name: epochs; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.epochs
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: idempotency_keys; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.idempotency_keys (
    key text NOT NULL COLLATE pg_catalog."C",
    fingerprint text NOT NULL,
    run bigint NOT NULL,
    at bigint NOT NULL
);


--
-- Name: journal; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.journal (
    "position" bigint NOT NULL,
    run bigint NOT NULL,
    first integer NOT NULL,
    at bigint NOT NULL,
    format smallint DEFAULT 1 NOT NULL,
    events text NOT NULL
);


--
-- Name: journal_position_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.journal_position_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: journal_position_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.journal_position_seq OWNED BY public.journal."position";


--
-- Name: members; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.members (
    slot smallint NOT NULL,
    epoch bigint NOT NULL,
    name text NOT NULL,
    joined_at bigint NOT NULL,
    lease_until bigint NOT NULL,
    CONSTRAINT members_slot_check CHECK (((slot >= 1) AND (slot <= 1023)))
)
WITH (fillfactor='50');


--
-- Name: results; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.results (
    run bigint NOT NULL,
    body text NOT NULL
);


--
-- Name: run_destinos; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.run_destinos (
    destino text NOT NULL COLLATE pg_catalog."C",
    run bigint NOT NULL,
    failed integer DEFAULT 0 NOT NULL
);


--
-- Name: runs; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.runs (
    run bigint NOT NULL,
    correlation_id text NOT NULL COLLATE pg_catalog."C",
    fingerprint text NOT NULL,
    tipo text,
    status text NOT NULL COLLATE pg_catalog."C",
    version integer NOT NULL,
    created_at bigint NOT NULL,
    closed_at bigint,
    wake_at bigint,
    owes integer NOT NULL,
    total integer NOT NULL,
    open integer NOT NULL,
    failed integer NOT NULL,
    hands smallint[] NOT NULL,
    deadline bigint,
    owed_at bigint,
    CONSTRAINT runs_correlation_id_check CHECK (((length(correlation_id) >= 1) AND (length(correlation_id) <= 128)))
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');


--
-- Name: schema_version; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.schema_version (
    version integer NOT NULL
);


--
-- Name: system_events; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.system_events (
    id bigint NOT NULL,
    at bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL
);


--
-- Name: system_events_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.system_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: system_events_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.system_events_id_seq OWNED BY public.system_events.id;


--
-- Name: task_types; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.task_types (
    tipo text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL,
    at bigint NOT NULL
);


--
-- Name: dead_letters id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.dead_letters ALTER COLUMN id SET DEFAULT nextval('public.dead_letters_id_seq'::regclass);


--
-- Name: journal position; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.journal ALTER COLUMN "position" SET DEFAULT nextval('public.journal_position_seq'::regclass);


--
-- Name: system_events id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.system_events ALTER COLUMN id SET DEFAULT nextval('public.system_events_id_seq'::regclass);


--
-- Data for Name: counters; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.counters VALUES
	('orquestrador_resultados', 'applied', 6);


--
-- Data for Name: cursors; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.cursors VALUES
	('fluxo_c_topics/system', 0, 1),
	('fluxo_c_topics', 1, NULL);


--
-- Data for Name: dead_letters; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: duties; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: idempotency_keys; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.idempotency_keys VALUES
	('chave-feita', '8e3e40083cdae2750c8089a6f67f6c2c', 1882015137882178560, 1794829500157927),
	('chave-parcial', '59a6923cb58427e924b3383e592a6ae7', 1882015138092942336, 1794829500309033),
	('chave-falhou', '4c5da79433b34cc33895017884da7e48', 1882015138144322560, 1794829500342262);


--
-- Data for Name: journal; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.journal VALUES
	(1, 1882015137882178560, 1, 1794829500157927, 1, '[["OrchestrationStarted",{"run":1882015137882178560,"correlation_id":"feita","plan":{"tasks":[{"kind":"coleta","name":"eco","queue":"escavador_eco","parametros":{"título":"☃"},"timeout":60.0,"max_attempts":3,"after":null,"feeds":[0]},{"kind":"execucao","name":"soma","queue":"executador_soma","parametros":{},"timeout":60.0,"max_attempts":3,"after":0,"feeds":[1]}],"gates":[{"mode":"todos","needed":1,"inputs":[0],"releases":[1],"essential":true},{"mode":"todos","needed":1,"inputs":[1],"releases":[],"essential":true}],"timeout":3600.0,"backoff":{"base":0.05,"cap":0.1},"notify":{"webhook":null,"queue":null},"tipo":null,"rules":2,"flow":null},"deadline":"2026-11-16T12:45:00.157927Z","fingerprint":"8e3e40083cdae2750c8089a6f67f6c2c","traceparent":null}],["TicketsDispatched",{"tickets":[0],"attempt":1}]]'),
	(2, 1882015137882178560, 3, 1794829500207088, 1, '[["TicketConcluded",{"ticket":0,"attempt":1,"dados":{"título":"☃"},"erros":[],"digest":3035361264}],["FanInClosed",{"gate":0,"passed":true}],["TicketsDispatched",{"tickets":[1],"attempt":1}]]'),
	(3, 1882015137882178560, 6, 1794829500259636, 1, '[["TicketConcluded",{"ticket":1,"attempt":1,"dados":{"total":1},"erros":[],"digest":1044382876}],["FanInClosed",{"gate":1,"passed":true}],["OrchestrationClosed",{"status":"concluida"}]]'),
	(4, 1882015138092942336, 1, 1794829500309033, 1, '[["OrchestrationStarted",{"run":1882015138092942336,"correlation_id":"parcial","plan":{"tasks":[{"kind":"coleta","name":"eco","queue":"escavador_eco","parametros":{},"timeout":60.0,"max_attempts":3,"after":null,"feeds":[0]},{"kind":"coleta","name":"quebrado","queue":"escavador_quebrado","parametros":{},"timeout":60.0,"max_attempts":3,"after":null,"feeds":[0]}],"gates":[{"mode":"todos","needed":1,"inputs":[0,1],"releases":[],"essential":true}],"timeout":3600.0,"backoff":{"base":0.05,"cap":0.1},"notify":{"webhook":null,"queue":null},"tipo":null,"rules":2,"flow":null},"deadline":"2026-11-16T12:45:00.309033Z","fingerprint":"59a6923cb58427e924b3383e592a6ae7","traceparent":null}],["TicketsDispatched",{"tickets":[0,1],"attempt":1}]]'),
	(5, 1882015138092942336, 3, 1794829500330699, 1, '[["TicketConcluded",{"ticket":0,"attempt":1,"dados":{},"erros":[],"digest":2542025125}]]'),
	(6, 1882015138092942336, 4, 1794829500330699, 1, '[["TicketFailed",{"ticket":1,"attempt":1,"status":"erro","erros":[{"codigo":"http_500","mensagem":"fora do ar","definitivo":true}],"dados":null,"definitivo":true,"digest":184867462}],["FanInClosed",{"gate":0,"passed":true}],["OrchestrationClosed",{"status":"parcial"}]]'),
	(7, 1882015138144322560, 1, 1794829500342262, 1, '[["OrchestrationStarted",{"run":1882015138144322560,"correlation_id":"falhou","plan":{"tasks":[{"kind":"coleta","name":"quebrado","queue":"escavador_quebrado","parametros":{},"timeout":60.0,"max_attempts":3,"after":null,"feeds":[0]}],"gates":[{"mode":"todos","needed":1,"inputs":[0],"releases":[],"essential":true}],"timeout":3600.0,"backoff":{"base":0.05,"cap":0.1},"notify":{"webhook":null,"queue":null},"tipo":null,"rules":2,"flow":null},"deadline":"2026-11-16T12:45:00.342262Z","fingerprint":"4c5da79433b34cc33895017884da7e48","traceparent":null}],["TicketsDispatched",{"tickets":[0],"attempt":1}]]'),
	(8, 1882015138144322560, 3, 1794829500359485, 1, '[["TicketFailed",{"ticket":0,"attempt":1,"status":"erro","erros":[{"codigo":"http_500","mensagem":"fora do ar","definitivo":true}],"dados":null,"definitivo":true,"digest":1152829880}],["FanInClosed",{"gate":0,"passed":false}],["OrchestrationClosed",{"status":"erro"}]]'),
	(9, 1882015138175779840, 1, 1794829500367905, 1, '[["OrchestrationStarted",{"run":1882015138175779840,"correlation_id":"aberta","plan":{"tasks":[{"kind":"coleta","name":"ausente","queue":"escavador_ausente","parametros":{},"timeout":60.0,"max_attempts":3,"after":null,"feeds":[0]},{"kind":"coleta","name":"eco","queue":"escavador_eco","parametros":{},"timeout":60.0,"max_attempts":3,"after":null,"feeds":[0]},{"kind":"execucao","name":"soma","queue":"executador_soma","parametros":{},"timeout":60.0,"max_attempts":3,"after":0,"feeds":[1]}],"gates":[{"mode":"todos","needed":1,"inputs":[0,1],"releases":[2],"essential":true},{"mode":"todos","needed":1,"inputs":[2],"releases":[],"essential":true}],"timeout":3600.0,"backoff":{"base":0.05,"cap":0.1},"notify":{"webhook":null,"queue":null},"tipo":null,"rules":2,"flow":null},"deadline":"2026-11-16T12:45:00.367905Z","fingerprint":"ea8390ab942e25a1b64772b11cadfcd8","traceparent":null}],["TicketsDispatched",{"tickets":[0,1],"attempt":1}]]'),
	(10, 1882015138189411328, 1, 1794829500390402, 1, '[["OrchestrationStarted",{"run":1882015138189411328,"correlation_id":"cancelada","plan":{"tasks":[{"kind":"coleta","name":"ausente","queue":"escavador_ausente","parametros":{},"timeout":60.0,"max_attempts":3,"after":null,"feeds":[0]}],"gates":[{"mode":"todos","needed":1,"inputs":[0],"releases":[],"essential":true}],"timeout":3600.0,"backoff":{"base":0.05,"cap":0.1},"notify":{"webhook":null,"queue":null},"tipo":null,"rules":2,"flow":null},"deadline":"2026-11-16T12:45:00.390402Z","fingerprint":"a73d2367480c705d74e4b1c0a2c8b2c8","traceparent":null}],["TicketsDispatched",{"tickets":[0],"attempt":1}]]'),
	(11, 1882015138175779840, 3, 1794829500403784, 1, '[["TicketConcluded",{"ticket":1,"attempt":1,"dados":{},"erros":[],"digest":2367536915}]]'),
	(12, 1882015138189411328, 3, 1794829500413138, 1, '[["CancelRequested",{"reason":"pedido errado"}],["TicketsClosed",{"tickets":[0],"status":"cancelada","reason":"pedido errado"}],["OrchestrationClosed",{"status":"cancelada"}]]'),
	(13, 1882015138175779840, 4, 1794829500431529, 1, '[["DispatchConfirmed",{"tickets":[[0,1]]}]]');


--
-- Data for Name: members; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: results; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.results VALUES
	(1882015137882178560, '{"correlation_id":"feita","status":"concluida","coletas":[{"fonte":"eco","dados":{"título":"☃"},"status":"concluida","erros":[],"tentativas":1,"duracao_ms":49}],"execucoes":[{"executador":"soma","resultado":{"total":1},"status":"concluida","erros":[],"tentativas":1,"duracao_ms":53}],"inicio":"2026-11-16T11:45:00.157927Z","fim":"2026-11-16T11:45:00.259636Z","duracao_ms":102}'),
	(1882015138092942336, '{"correlation_id":"parcial","status":"parcial","coletas":[{"fonte":"eco","dados":{},"status":"concluida","erros":[],"tentativas":1,"duracao_ms":22},{"fonte":"quebrado","dados":null,"status":"erro","erros":[{"codigo":"http_500","mensagem":"fora do ar","definitivo":true}],"tentativas":1,"duracao_ms":22}],"execucoes":[],"inicio":"2026-11-16T11:45:00.309033Z","fim":"2026-11-16T11:45:00.330699Z","duracao_ms":22}'),
	(1882015138144322560, '{"correlation_id":"falhou","status":"erro","coletas":[{"fonte":"quebrado","dados":null,"status":"erro","erros":[{"codigo":"http_500","mensagem":"fora do ar","definitivo":true}],"tentativas":1,"duracao_ms":17}],"execucoes":[],"inicio":"2026-11-16T11:45:00.342262Z","fim":"2026-11-16T11:45:00.359485Z","duracao_ms":17}'),
	(1882015138189411328, '{"correlation_id":"cancelada","status":"cancelada","coletas":[{"fonte":"ausente","dados":null,"status":"cancelada","erros":[],"tentativas":1,"duracao_ms":23}],"execucoes":[],"inicio":"2026-11-16T11:45:00.390402Z","fim":"2026-11-16T11:45:00.413138Z","duracao_ms":23}');


--
-- Data for Name: run_destinos; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.run_destinos VALUES
	('escavador_eco', 1882015137882178560, 0),
	('executador_soma', 1882015137882178560, 0),
	('escavador_eco', 1882015138092942336, 0),
	('escavador_quebrado', 1882015138092942336, 1),
	('escavador_quebrado', 1882015138144322560, 1),
	('escavador_ausente', 1882015138175779840, 0),
	('escavador_eco', 1882015138175779840, 0),
	('executador_soma', 1882015138175779840, 0),
	('escavador_ausente', 1882015138189411328, 0);


--
-- Data for Name: runs; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.runs VALUES
	(1882015137882178560, 'feita', '8e3e40083cdae2750c8089a6f67f6c2c', NULL, 'concluida', 8, 1794829500157927, 1794829500259636, NULL, 0, 2, 0, 0, '{}', 1794833100157927, NULL),
	(1882015138092942336, 'parcial', '59a6923cb58427e924b3383e592a6ae7', NULL, 'parcial', 6, 1794829500309033, 1794829500330699, NULL, 0, 2, 0, 1, '{}', 1794833100309033, NULL),
	(1882015138144322560, 'falhou', '4c5da79433b34cc33895017884da7e48', NULL, 'erro', 5, 1794829500342262, 1794829500359485, NULL, 0, 1, 0, 1, '{}', 1794833100342262, NULL),
	(1882015138189411328, 'cancelada', 'a73d2367480c705d74e4b1c0a2c8b2c8', NULL, 'cancelada', 5, 1794829500390402, 1794829500413138, NULL, 0, 1, 0, 0, '{}', 1794833100390402, NULL),
	(1882015138175779840, 'aberta', 'ea8390ab942e25a1b64772b11cadfcd8', NULL, 'em_execucao', 4, 1794829500367905, NULL, 1794829560431529, 0, 3, 2, 0, '{}', 1794833100367905, NULL);


--
-- Data for Name: schema_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.schema_version VALUES
	(1),
	(2),
	(3);


--
-- Data for Name: system_events; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: task_types; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Name: dead_letters_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.dead_letters_id_seq', 1, false);


--
-- Name: epochs; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.epochs', 1, true);


--
-- Name: journal_position_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.journal_position_seq', 13, true);


--
-- Name: system_events_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.system_events_id_seq', 1, false);


--
-- Name: counters counters_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.counters
    ADD CONSTRAINT counters_pkey PRIMARY KEY (queue, verdict);


--
-- Name: cursors cursors_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.cursors
    ADD CONSTRAINT cursors_pkey PRIMARY KEY (name);


--
-- Name: dead_letters dead_letters_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.dead_letters
    ADD CONSTRAINT dead_letters_pkey PRIMARY KEY (id);


--
-- Name: duties duties_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.duties
    ADD CONSTRAINT duties_pkey PRIMARY KEY (name);


--
-- Name: idempotency_keys idempotency_keys_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (key);


--
-- Name: journal journal_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.journal
    ADD CONSTRAINT journal_pkey PRIMARY KEY ("position");


--
-- Name: members members_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_pkey PRIMARY KEY (slot);


--
-- Name: results results_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.results
    ADD CONSTRAINT results_pkey PRIMARY KEY (run);


--
-- Name: run_destinos run_destinos_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run_destinos
    ADD CONSTRAINT run_destinos_pkey PRIMARY KEY (destino, run);


--
-- Name: runs runs_correlation_id_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_correlation_id_key UNIQUE (correlation_id);


--
-- Name: runs runs_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (run);


--
-- Name: system_events system_events_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.system_events
    ADD CONSTRAINT system_events_pkey PRIMARY KEY (id);


--
-- Name: task_types task_types_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.task_types
    ADD CONSTRAINT task_types_pkey PRIMARY KEY (tipo);


--
-- Name: dead_letters_by_cause; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX dead_letters_by_cause ON public.dead_letters USING btree (queue, reason, id);


--
-- Name: idempotency_keys_by_run; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idempotency_keys_by_run ON public.idempotency_keys USING btree (run);


--
-- Name: journal_by_run; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX journal_by_run ON public.journal USING btree (run, first);


--
-- Name: run_destinos_by_run; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX run_destinos_by_run ON public.run_destinos USING btree (run);


--
-- Name: run_failures; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX run_failures ON public.run_destinos USING btree (run, destino, failed) WHERE (failed > 0);


--
-- Name: runs_by_end; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX runs_by_end ON public.runs USING btree (closed_at) WHERE (closed_at IS NOT NULL);


--
-- Name: runs_by_status; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX runs_by_status ON public.runs USING btree (status, run);


--
-- Name: runs_live; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX runs_live ON public.runs USING btree (wake_at) WHERE ((closed_at IS NULL) OR (owes > 0) OR (wake_at IS NOT NULL));


--
-- PostgreSQL database dump complete
--

\unrestrict 4mrY7aGCvOk5gTzHiriFhheRHMphcipkgaStN8d3z3lewhvcaTycnhGJCelAWjf

