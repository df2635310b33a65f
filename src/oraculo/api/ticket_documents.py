"""The answers of the ticket service, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class ExecutionTicket(BaseModel):
    """The record, with all its fields."""

    model_config = ConfigDict(extra="allow")
    ticket_id: str
    plan_id: str
    task_type: str
    status: str = Field(examples=["RUNNING"])


class TicketList(BaseModel):
    tickets: list[dict[str, Any]] = Field(description="as ExecutionTicket")
    total: int | None = Field(description="null when not all plans were looked at")
    offset: int
    limit: int
    next: str | None = Field(description="the `cursor` of the next page")


class Compensation(BaseModel):
    ticket_id: str
    original_ticket_id: str
    status: str
    action: str
    reason: str


class TicketToken(BaseModel):
    access_token: str
    token_type: str = Field(examples=["Bearer"])
    expires_in: int | None = Field(description="seconds")
    expires_at: int | None = Field(description="epoch milliseconds")
    ticket_id: str
    scopes: list[str]


TICKET_MODELS: list[type[BaseModel]] = [ExecutionTicket, TicketList, Compensation, TicketToken]
