"use strict";
// Tables: press a head to sort by it, again to turn the order round.
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") !== "descending" && (head.classList.contains("r") || head.getAttribute("aria-sort") === "ascending");
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.cells[column].dataset.n === undefined ? null : Number(row.cells[column].dataset.n);
    const order = (one, two) => {
      const a = key(one), b = key(two);
      if (a === null && b === null) return one.cells[column].textContent.localeCompare(two.cells[column].textContent);
      return a === null ? -1 : b === null ? 1 : a - b;
    };
    const rows = [...table.tBodies[0].rows].sort((one, two) => (down ? -1 : 1) * order(one, two));
    table.tBodies[0].append(...rows);
  }));
}

// On paper nothing is folded.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));

// Charts over time share one window [from, to] of fractions of the run.
for (const times of document.querySelectorAll(".times")) {
  const charts = [...times.querySelectorAll(".zooms")].map((figure) => ({
    figure, plot: figure.querySelector(".plot"), svg: figure.querySelector("svg"), across: figure.querySelector(".across"),
    output: figure.querySelector("output"), data: JSON.parse(figure.querySelector("script").textContent),
  }));
  let from = 0, to = 1;

  const step = (raw) => {
    const power = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= raw * 0.999);
  };
  const show = () => {
    for (const { svg, across, data } of charts) {
      svg.setAttribute("viewBox", `${from * 10000} 0 ${(to - from) * 10000} 1000`);
      const each = step((to - from) * data.end / 5), ticks = [];
      for (let n = Math.ceil(from * data.end / each - 1e-9); n * each <= to * data.end * (1 + 1e-12); n++) ticks.push(n * each);
      across.replaceChildren(...ticks.map((tick, index) => {
        const span = document.createElement("span");
        const place = (tick / data.end - from) / (to - from);
        span.style.left = `${100 * place}%`;
        if (place > 0.93) span.className = "edge";
        span.textContent = Number(tick.toPrecision(8)) + (index === ticks.length - 1 ? ` ${data.unit}` : "");
        return span;
      }));
    }
    for (const band of times.querySelectorAll(".band")) {
      const a = Math.max(Number(band.dataset.a), from), b = Math.min(Number(band.dataset.b), to);
      band.hidden = b <= a;
      band.style.left = `${100 * (a - from) / (to - from)}%`;
      band.style.width = `${100 * (b - a) / (to - from)}%`;
    }
  };
  const zoom = (a, b) => {
    const wide = Math.min(Math.max(b - a, 1e-4), 1), start = Math.min(Math.max(a, 0), 1 - wide);
    [from, to] = [start, start + wide];
    show();
  };
  const around = (factor) => {
    const middle = (from + to) / 2, half = (to - from) / 2 * factor;
    zoom(middle - half, middle + half);
  };
  const does = { in: () => around(0.5), out: () => around(2), all: () => zoom(0, 1) };
  for (const button of times.querySelectorAll("[data-zoom]")) button.addEventListener("click", does[button.dataset.zoom]);

  for (const { plot, output, data } of charts) {
    const at = (event) => {
      const box = plot.getBoundingClientRect();
      return from + (to - from) * Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    };
    let start = null, mark = null;
    plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      start = at(event);
      mark = document.createElement("div");
      mark.className = "drag";
      plot.append(mark);
      plot.setPointerCapture(event.pointerId);
    });
    plot.addEventListener("pointermove", (event) => {
      const here = at(event), time = here * data.end;
      const read = data.lines.map((line) => {
        let index = line.x.findIndex((edge) => edge > time) - 1;
        if (index < 0) index = line.y.length - 1;
        return `${line.name} ${line.y[index]} ${data.yUnit}`;
      });
      output.textContent = `${Number(time.toPrecision(4))} ${data.unit}: ${read.join(", ")}`;
      if (mark) {
        mark.style.left = `${100 * (Math.min(start, here) - from) / (to - from)}%`;
        mark.style.width = `${100 * Math.abs(here - start) / (to - from)}%`;
      }
    });
    const end = (event) => {
      if (!mark) return;
      mark.remove();
      mark = null;
      const here = at(event);
      if (event.type === "pointerup" && Math.abs(here - start) > 0.01 * (to - from)) zoom(Math.min(start, here), Math.max(start, here));
    };
    plot.addEventListener("pointerup", end);
    plot.addEventListener("pointercancel", end);
    plot.addEventListener("dblclick", does.all);
    plot.addEventListener("pointerleave", () => { output.textContent = ""; });
  }
}
