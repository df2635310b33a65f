"""Temporal's sandbox, as cheap as it can be for thousands of short workflows.

Our own modules are passed through: to import them anew for every orchestration would cost more than all else it does.
Its payloads need no context: our codec does not ask whose they are, and to find out costs a visit to the sandbox for
each of them, three times.
"""

from __future__ import annotations

from typing import Any

from temporalio.converter import StorageDriverStoreContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

NO_STORAGE_TARGET = StorageDriverStoreContext(target=None)


class PassthroughSandboxRunner(SandboxedWorkflowRunner):
    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        instance = super().create_instance(det)
        instance.get_serialization_context = _no_context  # type: ignore[method-assign, assignment]
        instance.get_external_store_context = _nowhere  # type: ignore[method-assign, assignment]
        return instance


def _no_context(_command: Any) -> None:
    return None


def _nowhere(_command: Any) -> StorageDriverStoreContext:
    return NO_STORAGE_TARGET


SANDBOX = PassthroughSandboxRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules("oraculo"))
