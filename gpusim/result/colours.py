"""One colour for each kind, the same in every picture.

Hue says who spends the time: blue the GPU's own work, green data on the move, orange the driver's CPU work,
red and purple waiting in the fault path, grey the host. Base hues are those of Okabe and Ito, which
colour-blind readers tell apart; shades within a family differ in lightness, and every picture labels its
parts as well.
"""

from __future__ import annotations

from gpusim.kinds import Kind

COLOURS: dict[Kind, str] = {
    Kind.COMPUTE: "#0072B2",
    Kind.HBM: "#56B4E9",
    Kind.ZERO_COPY_LINK: "#23527C",
    Kind.TRANSLATION: "#8FBBDD",
    Kind.CONTENTION: "#004B77",
    Kind.LAUNCH: "#B5CDE3",
    Kind.SDMA_COPY: "#009E73",
    Kind.BO_CLEAR: "#66C2A5",
    Kind.BOUNCE_COPY: "#00664A",
    Kind.COPY_SETUP: "#A9DCC9",
    Kind.DRIVER_FIXED: "#A66F00",
    Kind.PAGE_ALLOC: "#E69F00",
    Kind.PAGE_ZERO: "#F5C242",
    Kind.DEVICE_PAGE: "#C98A12",
    Kind.DMA_MAP: "#F3D27A",
    Kind.HMM_WALK: "#8A6414",
    Kind.PTE_WRITE: "#FAE3A3",
    Kind.TLB_FLUSH: "#6B4E10",
    Kind.RECENT_SKIP: "#D55E00",
    Kind.FAULT_QUEUE: "#CC79A7",
    Kind.FAULT_DELIVERY: "#E5B3CF",
    Kind.RESEND: "#F0A273",
    Kind.DUPLICATES: "#8E3B6B",
    Kind.LOCK_WAIT: "#5E2750",
    Kind.EVICTION: "#A33A2C",
    Kind.WAVE_SLOTS: "#3D6FB4",
    Kind.QUEUES_STOPPED: "#B39BC8",
    Kind.DRIVE: "#7A5195",
    Kind.PAGE_CACHE: "#A05FB0",
    Kind.FILE_SYSTEM: "#C9A6D6",
    Kind.WRITEBACK: "#4B2E63",
    Kind.SWAP_IO: "#8C6BB1",
    Kind.PAGE_COPY: "#B8860B",
    Kind.PIN: "#DEB64A",
    Kind.IO_SUBMIT: "#7A5C1E",
    Kind.IO_PIN: "#94712A",
    Kind.IO_LOCK: "#7B4B94",
    Kind.IO_QUEUE: "#AE8FC0",
    Kind.BOUNCE_MAP: "#D9B44A",
    Kind.CACHE_DRAIN: "#3C8D78",
    Kind.HOST_FUNCTION: "#9C6B8E",
    Kind.CORE_WAIT: "#4D4D4D",
    Kind.HOST_MEMORY: "#6E6E6E",
    Kind.HOST_ALLOC: "#939393",
    Kind.SYNC: "#B4B4B4",
    Kind.SLEEP: "#D0D0D0",
}
REST_COLOUR = "#E2E2E2"
DARK = "#1A1A1A"
LIGHT = "#FFFFFF"


def colour(kind_name: str) -> str:
    """The colour of a kind as it is written in summary.json; a light grey for `other`."""
    try:
        return COLOURS[Kind[kind_name.upper()]]
    except KeyError:
        return REST_COLOUR


def text_on(background: str) -> str:
    """Dark or light, whichever reads better on a colour (relative luminance of WCAG)."""
    channels = [int(background[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return LIGHT if 1.05 / (luminance + 0.05) >= (luminance + 0.05) / (0.0103 + 0.05) else DARK
