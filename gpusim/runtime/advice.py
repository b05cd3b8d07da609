"""The words of hipMemAdvise and of access in SVM attributes."""

from __future__ import annotations

from enum import StrEnum


class Advice(StrEnum):
    """The advice of hipMemAdvise."""

    SET_READ_MOSTLY = "set_read_mostly"
    UNSET_READ_MOSTLY = "unset_read_mostly"
    SET_PREFERRED_LOCATION = "set_preferred_location"
    UNSET_PREFERRED_LOCATION = "unset_preferred_location"
    SET_ACCESSED_BY = "set_accessed_by"
    UNSET_ACCESSED_BY = "unset_accessed_by"
    SET_COARSE_GRAIN = "set_coarse_grain"
    UNSET_COARSE_GRAIN = "unset_coarse_grain"


class Access(StrEnum):
    """What a GPU may do with a range."""

    ACCESS = "access"
    IN_PLACE = "in_place"
    NONE = "none"
