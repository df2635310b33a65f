"""The connection to Temporal: made as soon as the server is there, watched from then on, with a worker on it."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client, Interceptor, RPCTimeoutOrCancelledError
from temporalio.converter import DataConverter
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.service import RetryConfig, RPCError, RPCStatusCode
from temporalio.worker import Worker

from oraculo import __version__
from oraculo.engines.temporal.codec import CONVERTER
from oraculo.engines.temporal.sandbox import SANDBOX
from oraculo.engines.temporal.workflow import WORKFLOWS
from oraculo.errors import EngineUnavailableError
from oraculo.ports.clock import Clock
from oraculo.runtime.loops import for_ever

if TYPE_CHECKING:
    from oraculo.engines.temporal.tracing import Tracing

log = structlog.get_logger("oraculo.temporal")

T = TypeVar("T")
CALL_TIMEOUT = timedelta(seconds=5)
CONNECT_TIMEOUT_S = 5.0
HEALTH_CHECK_INTERVAL_S, RECONNECT_INTERVAL_S = 2.0, 0.25  # while the server answers, and while it does not
STICKY_QUEUE_TIMEOUT = timedelta(seconds=5)  # for which a workflow task waits for the process that has it cached
SHUTDOWN_TIMEOUT = timedelta(seconds=5)  # for tasks under way
MAX_WORKFLOW_TASKS, MAX_ACTIVITIES, MAX_CACHED_WORKFLOWS = 200, 1000, 5000
SEARCH_ATTRIBUTES = ("OraculoCorrelation", "OraculoPlan", "OraculoIntent", "OraculoRisk", "OraculoStatus")
UNAVAILABLE_CODES = frozenset(
    (
        RPCStatusCode.CANCELLED,
        RPCStatusCode.UNKNOWN,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.RESOURCE_EXHAUSTED,
        RPCStatusCode.ABORTED,
        RPCStatusCode.INTERNAL,
        RPCStatusCode.UNAVAILABLE,
    )
)


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    namespace: str = "default"
    task_queue: str = "orchestration-tasks"
    tls: bool = False
    api_key: str = ""

    @property
    def target(self) -> str:
        return f"{self.host}:{self.port}"


@functools.cache
def _runtime() -> Runtime:
    """One for the process. What its Rust part has to say goes the way of all logs."""
    forwarding = LogForwardingConfig(logging.getLogger("temporalio.core"))
    levels = TelemetryFilter(core_level="ERROR", other_level="ERROR")
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(levels, forwarding)))


class TemporalConnection:
    """The client, its health, and the worker on it. `marked`: the server knows our search attributes. `failing_since`:
    the instant since which it does not answer."""

    def __init__(
        self,
        address: Address,
        clock: Clock,
        identity: str,
        tracing: Tracing | None = None,
        converter: DataConverter = CONVERTER,
    ) -> None:
        self.address = address
        self._converter = converter
        self._interceptors = () if tracing is None else (tracing.interceptor,)  # the worker's, too
        self._inside = nullcontext if tracing is None else tracing.inside
        self._clock = clock
        self._activities: Sequence[Callable[..., Any]] = ()
        self._identity = identity
        self._client: Client | None = None
        self._worker: Worker | None = None
        self._warned = False
        self._stopping = False
        self.marked = False
        self.failing_since: datetime | None = clock.now()

    # -- calls -------------------------------------------------------------------------------------------------------

    async def call(self, what: Callable[[Client], Awaitable[T]], traceparent: str | None = None) -> T:
        """EngineUnavailableError when the server is away; any other refusal is an RPCError. `traceparent`: of the span
        that it is part of."""
        if self._client is None or self.failing_since is not None:
            raise self._away()
        try:
            with self._inside(traceparent):
                return await what(self._client)
        except RPCTimeoutOrCancelledError as error:
            raise self._away() from error
        except RPCError as error:
            if error.status in UNAVAILABLE_CODES:
                raise self._away() from error
            raise

    def _away(self) -> EngineUnavailableError:
        return EngineUnavailableError(f"Temporal at {self.address.target} does not answer")

    # -- life --------------------------------------------------------------------------------------------------------

    @property
    def works(self) -> bool:
        """True when workflows and activities run in this process."""
        return bool(self._activities)

    async def run(self, activities: Sequence[Callable[..., Any]] = ()) -> None:
        """Connect, and stay connected. With `activities`, a worker runs them and the workflows in this process."""
        self._activities = activities
        if self._client is None:
            self._client = await self._connect()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch())
            tasks.create_task(self._mark())
            if self.works:
                tasks.create_task(for_ever(self._work))

    async def _connect(self) -> Client:
        while True:
            try:
                client = await connect(self.address, self._identity, self._interceptors, self._converter)
            except EngineUnavailableError as error:
                self._found(str(error))
                await asyncio.sleep(RECONNECT_INTERVAL_S)
            else:
                self._found(None)
                return client

    async def _watch(self) -> None:
        client = self._client
        assert client is not None
        while True:
            try:
                await client.service_client.check_health(timeout=CALL_TIMEOUT)
                self._found(None)
            except RPCError as error:
                self._found(str(error))
            await asyncio.sleep(HEALTH_CHECK_INTERVAL_S if self.failing_since is None else RECONNECT_INTERVAL_S)

    def _found(self, error: str | None) -> None:
        if error is None:
            if self.failing_since is not None:
                log.info("Temporal answers", server=self.address.target, namespace=self.address.namespace)
            self.failing_since, self._warned = None, False
            return
        if not self._warned:
            log.warning("Temporal does not answer", server=self.address.target, error=error)
        self._warned = True
        self.failing_since = self.failing_since or self._clock.now()

    async def _work(self) -> None:
        assert self._client is not None
        if self._stopping:
            await asyncio.Event().wait()  # until it is cancelled
        self._worker = Worker(
            self._client,
            task_queue=self.address.task_queue,
            workflows=WORKFLOWS,
            activities=self._activities,
            workflow_runner=SANDBOX,
            build_id=f"oraculo-{__version__}",
            max_cached_workflows=MAX_CACHED_WORKFLOWS,
            max_concurrent_workflow_tasks=MAX_WORKFLOW_TASKS,
            max_concurrent_activities=MAX_ACTIVITIES,
            max_concurrent_local_activities=MAX_ACTIVITIES,
            sticky_queue_schedule_to_start_timeout=STICKY_QUEUE_TIMEOUT,
            graceful_shutdown_timeout=SHUTDOWN_TIMEOUT,
        )
        try:
            await self._worker.run()
        except (RPCError, RuntimeError) as error:
            log.error("the Temporal worker ended, and begins again", error=str(error))
            await asyncio.sleep(HEALTH_CHECK_INTERVAL_S)
        finally:
            self._worker = None

    async def stop_working(self) -> None:
        """What is under way is finished; nothing more is taken."""
        self._stopping = True
        worker = self._worker
        if worker is not None and worker.is_running:
            patience = 2 * SHUTDOWN_TIMEOUT.total_seconds() if self.failing_since is None else HEALTH_CHECK_INTERVAL_S
            try:
                async with asyncio.timeout(patience):
                    await worker.shutdown()
            except TimeoutError:
                log.warning("workflow tasks were left; Temporal gives them to others")

    async def _mark(self) -> None:
        """Our search attributes, if they are there or can be made. Until then workflows have a memo instead."""
        while not self.marked:
            assert self._client is not None
            try:
                self.marked = await _attributes_known(self._client)
            except RPCError as error:
                if error.status not in UNAVAILABLE_CODES and error.status is not RPCStatusCode.NOT_FOUND:
                    log.warning(
                        "no search attributes: Temporal refuses them", attributes=SEARCH_ATTRIBUTES, error=str(error)
                    )
                    return
                await asyncio.sleep(HEALTH_CHECK_INTERVAL_S)


async def connect(
    address: Address, identity: str, interceptors: Sequence[Interceptor] = (), converter: DataConverter = CONVERTER
) -> Client:
    """A client of a server that answers and has the namespace; EngineUnavailableError says what is wrong."""
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            client = await Client.connect(
                address.target,
                namespace=address.namespace,
                api_key=address.api_key or None,
                tls=address.tls or None,
                data_converter=converter,
                interceptors=interceptors,
                identity=identity,
                retry_config=RetryConfig(max_elapsed_time_millis=2000, max_retries=5),
                runtime=_runtime(),
            )
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=address.namespace))
    except (RPCError, RuntimeError, OSError, TimeoutError) as error:
        raise EngineUnavailableError(f"{address.target}: {error or 'no answer'}") from error
    return client


async def _attributes_known(client: Client) -> bool:
    operator, namespace = client.operator_service, client.namespace
    known = await operator.list_search_attributes(ListSearchAttributesRequest(namespace=namespace))
    missing = [name for name in SEARCH_ATTRIBUTES if name not in known.custom_attributes]
    if missing:
        keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
        await operator.add_search_attributes(
            AddSearchAttributesRequest(search_attributes=dict.fromkeys(missing, keyword), namespace=namespace)
        )
    return True
