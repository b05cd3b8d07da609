"""Frames that processes share after forks, against sets of owners page by page."""

from hypothesis import given
from hypothesis import strategies as st

from gpusim.linux.address_space import NOWHERE, RAM, VRAM, Vma, VmaKind
from gpusim.linux.sharing import Frames

PAGES = 6
PART = st.tuples(st.integers(0, PAGES - 1), st.integers(1, PAGES)).map(
    lambda p: (p[0], min(PAGES, p[0] + p[1]))
)
STEP = st.tuples(st.sampled_from(["fork", "write", "leave", "touch"]), st.integers(0, 7), PART)


class Owners:
    """The oracle: who has which frame of each page."""

    def __init__(self):
        self.frames = [[{0}] for _ in range(PAGES)]

    def fork(self, who, new):
        for page in self.frames:
            for owners in page:
                if who in owners:
                    owners.add(new)

    def leave(self, who, start, end):
        freed = 0
        for page in self.frames[start:end]:
            for owners in page:
                owners.discard(who)
            freed += sum(not owners for owners in page)
            page[:] = [owners for owners in page if owners]
        return freed

    def write(self, who, start, end):
        copied = 0
        for page in self.frames[start:end]:
            for owners in list(page):
                if who in owners and len(owners) > 1:
                    owners.discard(who)
                    page.append({who})
                    copied += 1
        return copied

    def touch(self, who, start, end):
        new = 0
        for page in self.frames[start:end]:
            if not any(who in owners for owners in page):
                page.append({who})
                new += 1
        return new

    @property
    def used(self):
        return sum(map(len, self.frames))


@given(st.lists(STEP, max_size=25))
def test_frames_are_counted_as_sets_of_owners_are(steps):
    first = Vma("x", 0, PAGES, VmaKind.ANONYMOUS)
    first.move(0, PAGES - 1, RAM)
    frames, owners, vmas, used = Frames(PAGES), Owners(), [first], PAGES
    for verb, number, (start, end) in steps:
        who = number % len(vmas)
        vma = vmas[who]
        if verb == "fork" and len(vmas) < 8:
            vmas.append(frames.fork(vma))
            owners.fork(who, len(vmas) - 1)
        elif verb == "leave":
            freed = vma.leave_ram(start, end - 1)
            vma.move(start, end - 1, NOWHERE)
            assert freed == owners.leave(who, start, end)
            used -= freed
        elif verb == "write" and vma.shared is not None:
            copied, _ = frames.counts(vma, start, end)
            frames.leave(vma, start, end)
            assert copied == owners.write(who, start, end)
            used += copied
        elif verb == "touch":
            new = vma.count(start, end - 1, NOWHERE)
            vma.where[start:end] = vma.where[start:end].replace(bytes([NOWHERE]), bytes([RAM]))
            assert new == owners.touch(who, start, end)
            used += new
        assert used == owners.used


def test_what_lay_in_vram_is_shared_when_it_is_back():
    vma = Vma("x", 0, 4, VmaKind.ANONYMOUS)
    vma.where = bytearray([VRAM, VRAM, RAM, NOWHERE])
    frames = Frames(4)
    one, two = frames.fork(vma), frames.fork(vma)
    vma.where = bytearray([RAM, VRAM, RAM, NOWHERE])
    frames.share(vma, one, 0, 1)
    frames.share(vma, two, 0, 1)
    assert list(one.where) == [RAM, VRAM, RAM, NOWHERE]
    assert frames.counts(two, 0, 4) == (2, 0)
    assert one.leave_ram(0, 3) == two.leave_ram(0, 3) == 0
    assert vma.leave_ram(0, 3) == 2


def test_what_has_gone_meanwhile_is_nowhere():
    vma = Vma("x", 0, 2, VmaKind.ANONYMOUS)
    vma.where = bytearray([VRAM, RAM])
    frames = Frames(2)
    copy = frames.fork(vma)
    frames.share(None, copy, 0, 2)
    assert list(copy.where) == [NOWHERE, RAM]
