"""The asyncio client is made from the blocking one."""
