"""The page in a real browser: it opens in silence, shows its pictures, sorts and zooms, and fits phone and paper."""

import pytest

import gpusim as gs
from gpusim.report import html
from gpusim.scenario import loader
from tests import chromium

pytestmark = chromium.needed

SCENARIO = """
version: 1
name: shown
question: What takes so long?
system: {node: mi210-pcie4, gpus: 1}
kernels:
  scale: {pattern: stream}
processes:
  - name: app
    env: {HSA_XNACK: "1"}
    buffers:
      x: {size: 64MiB, allocator: malloc}
      pinned: {size: 64MiB, allocator: hipHostMalloc}
      device: {size: 64MiB, allocator: hipMalloc}
    threads:
      main:
        - {name: fill, host_touch: {buffer: x, access: write}}
        - {name: upload, stream: copies, memcpy: {dst: device, src: pinned, async: true}}
        - {name: scale, launch: {kernel: scale, reads: [x], writes: [x], wait: true}}
        - {name: again, launch: {kernel: scale, reads: [device], writes: [device], wait: true}}
"""
PICTURES = """
[...document.querySelectorAll("svg, .bar, .band, .mark")].map((one) => {
  const box = one.getBoundingClientRect();
  return [one.outerHTML.slice(0, 60), box.width, box.height];
})
"""
# contrast of WCAG between an element's text and what lies behind it
CONTRAST = """
(selector) => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[0-9.]+/g).slice(0, 3).map((one) => {
      const part = Number(one) / 255;
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)") return colour;
    }
  };
  return Math.min(...[...document.querySelectorAll(selector)].map((one) => {
    const pair = [light(getComputedStyle(one).color), light(behind(one))].sort((a, b) => b - a);
    return (pair[0] + 0.05) / (pair[1] + 0.05);
  }));
}
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    result = gs.run(loader.loads(SCENARIO), record="spans")
    return html.save(result, tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    made = chromium.Chromium(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@pytest.fixture
def open_page(browser, file):
    pages = []

    def make(**looks):
        pages.append(browser.open(file, **looks))
        return pages[-1]

    yield make
    for one in pages:
        one.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_without_errors_and_asks_the_network_for_nothing(open_page, scheme):
    page = open_page(scheme=scheme)
    assert page.complaints() == []
    assert page.requests() == []
    assert page.run("document.title") == "shown – gpusim"


@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (1100, "dark"), (390, "light")])
def test_every_picture_is_visible(open_page, width, scheme):
    pictures = open_page(width=width, scheme=scheme).run(PICTURES)
    assert len(pictures) > 8
    assert [one for one in pictures if not (one[1] >= 1 and one[2] >= 1)] == []
    lines = open_page(width=width, scheme=scheme).run(
        '[...document.querySelectorAll("svg")].map((one) => one.querySelectorAll("path:not(.grid)").length)'
    )
    assert min(lines) >= 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "selector", ["p", "td", "th button", "dt", ".key li", ".up span", ".bar span", ".band", ".grade"]
)
def test_text_stands_out_from_what_is_behind_it(open_page, scheme, selector):
    page = open_page(scheme=scheme)
    page.run('document.querySelectorAll("details").forEach((one) => { one.open = true; })')
    assert page.run(f'({CONTRAST})("{selector}")') >= 4.5


def test_dark_is_dark_and_light_is_light(open_page):
    shades = [
        open_page(scheme=scheme).run("getComputedStyle(document.body).backgroundColor")
        for scheme in ("light", "dark")
    ]
    assert shades == ["rgb(255, 255, 255)", "rgb(21, 23, 26)"]


def test_a_table_sorts_by_number_when_its_head_is_pressed(open_page):
    page = open_page()
    column = (
        '[...document.querySelectorAll("[aria-label=steps] tbody tr")]'
        ".map((row) => Number(row.cells[3].dataset.n))"
    )
    press = 'document.querySelectorAll("[aria-label=steps] th button")[3].click()'
    page.run(press)
    down = page.run(column)
    assert down == sorted(down, reverse=True)
    assert len(set(down)) > 1
    page.run(press)
    assert page.run(column) == sorted(down)
    assert page.run('document.querySelectorAll("[aria-label=steps] th")[3].ariaSort') == "ascending"


def test_a_table_sorts_by_words_too(open_page):
    page = open_page()
    page.run('document.querySelector("[aria-label=steps] th button").click()')
    names = page.run(
        '[...document.querySelectorAll("[aria-label=steps] tbody tr")].map((row) => row.cells[0].textContent)'
    )
    assert names == ["again", "fill", "scale", "upload"]


def test_dragging_across_a_chart_zooms_all_charts_over_time(open_page):
    page = open_page(height=6000)
    boxes = '[...document.querySelectorAll(".zooms svg")].map((one) => one.getAttribute("viewBox"))'
    assert set(page.run(boxes)) == {"0 0 10000 1000"}
    x, y, width, height = page.run(
        '(() => { const b = document.querySelector(".zooms .plot").getBoundingClientRect();'
        " return [b.x, b.y, b.width, b.height]; })()"
    )
    page.drag(x + 0.25 * width, y + height / 2, x + 0.75 * width)
    (view,) = set(page.run(boxes))
    start, _, wide, _ = map(float, view.split())
    assert (start, wide) == (pytest.approx(2500, abs=30), pytest.approx(5000, abs=30))
    ticks = page.run('[...document.querySelectorAll(".zooms .across")][0].textContent')
    assert not ticks.startswith("0")
    page.run('document.querySelector("[data-zoom=all]").click()')
    assert set(page.run(boxes)) == {"0 0 10000 1000"}
    assert page.complaints() == []


def test_it_fits_a_phone(open_page):
    page = open_page(width=390, height=800)
    assert page.run("document.documentElement.scrollWidth") == 390
    assert page.run("parseFloat(getComputedStyle(document.body).fontSize)") >= 14


def test_on_paper_everything_is_unfolded_and_buttons_are_gone(open_page):
    page = open_page(media="print", scheme="dark")
    assert page.run('getComputedStyle(document.querySelector(".tools")).display') == "none"
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf().startswith(b"%PDF")
    assert page.run('[...document.querySelectorAll("details")].every((one) => one.open)') is True
