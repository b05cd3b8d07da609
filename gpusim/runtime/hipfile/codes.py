"""Error codes of hipFile and limits of one call (`hipfile.md` 1.6, 2.2)."""

from __future__ import annotations

INVALID_VALUE = "hipFileInvalidValue"
INTERNAL = "hipFileInternalError"
MEMORY_TYPE = "hipFileHipMemoryTypeInvalid"
NOT_REGISTERED = "hipFileHandleNotRegistered"
ALREADY_REGISTERED = "hipFileHandleAlreadyRegistered"
MEMORY_NOT_REGISTERED = "hipFileMemoryNotRegistered"
DRIVER_CLOSING = "hipFileDriverClosing"
BATCH_FULL = "hipFileBatchFull"
NO_DESCRIPTOR = "hipFileGetNewFDFailed"
HIP_OUT_OF_MEMORY = "hipErrorOutOfMemory"

#: one call moves at most this many bytes: INT_MAX down to a whole page
MOST_BYTES = 0x7FFF_F000

#: what a call returns, where it is no errno
NUMBERS: dict[str, int] = {
    MEMORY_TYPE: -5013,
    INVALID_VALUE: -5022,
    NOT_REGISTERED: -5027,
    INTERNAL: -5030,
}
