// Draws one disk and workload at a time, when it is chosen: a page of a hundred charts is unreadable.
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const NINES = [0.5, 0.1, 0.01, 0.001, 0.0001];
const KERNEL = -1;
let shown = data.first;

const slot = (scheduler) => data.schedulers.indexOf(scheduler);
const colour = (number) => css(`--s${number % 8}`);
const ofScheduler = (name) => colour(slot(name));
const dash = (name) => DASHES[slot(name) % DASHES.length];

function draw(name, title, note, traces, extra, height = 300) {
  const figure = byId(`figure-${name}`);
  figure.querySelector("strong").textContent = title;
  figure.querySelector("span").textContent = note;
  Plotly.react(figure.querySelector(".plot"), traces, layout(extra, height), { displayModeBar: false, responsive: true });
}

// Shows the reason for a missing picture.
function without(name, title, why) {
  const figure = byId(`figure-${name}`);
  figure.querySelector("strong").textContent = title;
  figure.querySelector("span").textContent = why;
  Plotly.purge(figure.querySelector(".plot"));
}

const brief = (name) => (name.length > 22 ? `${name.slice(0, 21)}\u2026` : name);

// Names at the right ends of lines, pushed apart so that none hides another.
function endLabels(lines, range, height, yref = "y", x = 1) {
  const [low, high] = range, step = (high - low) * 17 / (height - 60);
  const ends = lines.map((line) => ({ ...line, at: line.y })).sort((a, b) => a.at - b.at);
  for (let i = 1; i < ends.length; i++) ends[i].at = Math.max(ends[i].at, ends[i - 1].at + step);
  const over = ends.length ? Math.max(0, ends[ends.length - 1].at - high) : 0;
  return ends.map((line) => ({
    xref: "paper", x, xanchor: "left", y: line.at - over, yref, text: plain(brief(line.name)), showarrow: false,
    font: { color: ofScheduler(line.name), size: 12 },
  }));
}

// Round tick values; fewer if there is little space. The range is never so narrow that
// differences without practical effect fill the picture.
function logAxis(values) {
  const known = values.filter((value) => value > 0);
  const low = Math.min(...known) / 1.25, high = Math.max(...known) * 1.25, powers = Math.log10(high / low);
  const steps = powers > (narrow.matches ? 3 : 5) ? [1] : powers > 1.6 ? [1, 3] : powers > 0.7 ? [1, 2, 3, 5, 7] : [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const step of steps) ticks.push(step * 10 ** power);
  }
  const inside = ticks.filter((tick) => tick >= low && tick <= high);
  return { type: "log", range: [Math.log10(low), Math.log10(high)], tickvals: inside, ticktext: inside.map(seen), tickangle: 0 };
}

function widest(names) {
  return 20 + 7 * Math.max(...names.map((name) => brief(name).length));
}

function ranking(cell) {
  const names = cell.rows.map((row) => row.scheduler).reverse();
  const trace = (key, axes) => ({
    ...axes, type: "scatter", mode: "markers", y: names.map(plain),
    x: names.map((name) => cell.rows.find((row) => row.scheduler === name)[key][0]),
    marker: { size: 12, color: names.map(ofScheduler) },
    error_x: {
      type: "data", symmetric: false, thickness: 2, width: 7, color: css("--quiet"),
      array: names.map((name) => { const r = cell.rows.find((row) => row.scheduler === name)[key]; return r[2] - r[0]; }),
      arrayminus: names.map((name) => { const r = cell.rows.find((row) => row.scheduler === name)[key]; return r[0] - r[1]; }),
    },
    hovertemplate: "%{y}: %{x}<extra></extra>",
  });
  const zero = { rangemode: "tozero" };
  const wide = !narrow.matches;
  const height = (wide ? 1 : 2) * (90 + 34 * names.length);
  draw("ranking", cell.titles.throughput + ". " + cell.titles.latency + ".", "Dot: median of the repeats; bar: its interval.",
    [trace("rate", { xaxis: "x", yaxis: "y" }), trace("p99", { xaxis: "x2", yaxis: "y2" })], {
      xaxis: { ...zero, domain: wide ? [0, 0.46] : [0, 1], anchor: "y", title: { text: cell.rate } },
      xaxis2: { ...zero, domain: wide ? [0.54, 1] : [0, 1], anchor: "y2", title: { text: `p99 of ${cell.operation}, ${cell.unit}: less is better` } },
      yaxis: { domain: wide ? [0, 1] : [0.64, 1] },
      yaxis2: { domain: wide ? [0, 1] : [0, 0.36], anchor: "x2", showticklabels: !wide },
    }, height);
}

function cdf(cell) {
  const names = Object.keys(cell.cdf);
  if (!names.length) return without("cdf", `Latency of ${cell.operation}`, "No latency was measured.");
  const traces = names.map((name) => ({
    type: "scatter", mode: "lines", name: plain(name), x: cell.cdf[name].latency, y: cell.cdf[name].tail,
    line: { color: ofScheduler(name), dash: dash(name), width: 2.5 },
    hovertemplate: `%{x} ${cell.unit}<extra>${plain(name)}</extra>`,
  }));
  // Each name points at its own line at a height of its own.
  const axis = logAxis(names.flatMap((name) => cell.cdf[name].latency));
  const annotations = names.map((name, index) => {
    const line = cell.cdf[name], share = 0.35 * 10 ** (-3.2 * (index + 0.5) / names.length);
    const at = line.tail.findIndex((tail) => tail <= share);
    const right = (Math.log10(line.latency[at]) - axis.range[0]) / (axis.range[1] - axis.range[0]) < 0.5;
    return {
      x: Math.log10(line.latency[at] || 1e-9), y: Math.log10(line.tail[at]), text: plain(brief(name)), ax: right ? 40 : -40, ay: 0,
      arrowcolor: ofScheduler(name), arrowwidth: 1.5, arrowhead: 0, font: { color: ofScheduler(name), size: 12 },
      xanchor: right ? "left" : "right", bgcolor: css("--page"),
    };
  });
  draw("cdf", `Latency of ${cell.operation}`, "Further left is quicker; the top is one in ten thousand.", traces, {
    annotations,
    xaxis: { ...axis, title: { text: `latency, ${cell.unit}` } },
    yaxis: {
      type: "log", range: [0, -4.05], tickvals: [0.9, ...NINES], ticktext: ["10 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"],
      title: { text: "share with a lower latency" },
    },
  }, narrow.matches ? 340 : 660);
}

function overTime(cell, key, name, title, note, unit) {
  if (cell.unmeasured.processes) return without(name, title, cell.unmeasured.processes);
  const names = Object.keys(cell.stories);
  const values = names.flatMap((n) => cell.stories[n][key].filter((v) => v !== null && v > 0));
  const log = key === "latency" && values.length && Math.max(...values) / Math.min(...values) > 50;
  const sorted = [...values].sort((a, b) => a - b), high = sorted[sorted.length - 1] || 1e-9;
  const usual = sorted[Math.floor(sorted.length * 0.97)] || high;
  // A burst into the page cache would flatten everything else.
  const cut = !log && high > 4 * usual;
  const top = (cut ? usual * 1.5 : high) * 1.05;
  const axis = log ? logAxis(values) : { type: "linear", range: [0, top] };
  const traces = names.map((n) => ({
    type: "scatter", mode: "lines+markers", marker: { size: 3 }, name: plain(n), x: cell.stories[n].t, y: cell.stories[n][key],
    line: { color: ofScheduler(n), dash: dash(n), width: 2 }, hovertemplate: `%{x} s: %{y} ${unit}<extra>${plain(n)}</extra>`,
  }));
  const last = (list) => list.filter((v) => v !== null && (!log || v > 0)).slice(-8);
  const ends = names.map((n) => {
    const tail = last(cell.stories[n][key]);
    const level = tail.reduce((sum, v) => sum + v, 0) / Math.max(tail.length, 1);
    return { name: n, y: log ? Math.log10(level || 1e-9) : level };
  });
  draw(name, title, cut ? `${note} Peaks up to ${seen(high)} ${unit} are cut off.` : note, traces, {
    annotations: endLabels(ends, axis.range, 300), margin: { l: 56, r: widest(names), t: 8, b: 44 },
    xaxis: { title: { text: "virtual time, s" } }, yaxis: { ...axis, title: { text: unit } },
  });
}

// One picture per scheduler, side by side or, on a phone, one below the other; same scales.
function multiples(cell, make, x, y, each) {
  const names = cell.rows.map((row) => row.scheduler).filter((name) => cell.stories[name]);
  const wide = !narrow.matches && names.length < 5;
  const extra = { annotations: [], margin: { l: 56, r: 16, t: 26, b: 44 } };
  const traces = [];
  names.forEach((name, index) => {
    const id = index ? index + 1 : "";
    const gap = 0.03, width = (1 - gap * (names.length - 1)) / names.length;
    const rowGap = 0.36 / names.length, row = (1 - rowGap * (names.length - 1)) / names.length;
    const across = wide ? [index * (width + gap), index * (width + gap) + width] : [0, 1];
    const top = 1 - index * (row + rowGap);
    const up = wide ? [0, 1] : [Math.max(0, top - row), top];
    const lastRow = wide || index === names.length - 1;
    extra[`xaxis${id}`] = { domain: across, anchor: `y${id}`, ...(index && { matches: "x" }), ...x, title: lastRow ? x.title : undefined };
    extra[`yaxis${id}`] = { domain: up, anchor: `x${id}`, ...(index && { matches: "y" }), ...y, title: index && wide ? undefined : y.title, showticklabels: !(index && wide) };
    extra.annotations.push({
      xref: "paper", yref: "paper", x: across[0], y: up[1], xanchor: "left", yanchor: "bottom", showarrow: false,
      text: `<b>${plain(name)}</b>`, font: { color: ofScheduler(name) },
    });
    for (const trace of make(cell.stories[name], name)) traces.push({ ...trace, xaxis: `x${id}`, yaxis: `y${id}` });
  });
  return [traces, extra, wide ? 330 : Math.max(1, names.length) * each];
}

// Other colours than those of the first schedulers.
const PROCESS_SLOTS = [3, 6, 5, 4, 1, 2, 0];

// With more processes than colours, the processes of a job share a colour.
function processColour(cell, process) {
  if (process === KERNEL) return css("--quiet");
  const number = cell.jobs.length > PROCESS_SLOTS.length ? [...new Set(cell.jobs)].indexOf(cell.jobs[process]) : process;
  return colour(PROCESS_SLOTS[number % PROCESS_SLOTS.length]);
}

function processesOf(cell) {
  const used = new Set(Object.values(cell.stories).flatMap((story) => [...story.overview.process, ...story.detail.process]));
  return [...used].sort((a, b) => a - b);
}

const processName = (cell, process) => (process === KERNEL ? "write-back by the kernel" : cell.jobs[process]);

// Each job once, with the colours of its processes; the first eight jobs, the rest counted.
function processLegend(cell, figure) {
  const jobs = new Map();
  for (const process of processesOf(cell)) {
    const name = processName(cell, process);
    jobs.set(name, [...(jobs.get(name) ?? []), process]);
  }
  const labels = [...jobs].slice(0, 8).flatMap(([name, processes]) => {
    const label = document.createElement("b");
    for (const shade of new Set(processes.map((process) => processColour(cell, process)))) {
      const chip = document.createElement("i");
      chip.className = "chip";
      chip.style.background = shade;
      label.append(chip);
    }
    label.append(processes.length > 1 ? `${name} \u00d7 ${processes.length} ` : `${name} `);
    return [label, " "];
  });
  byId(`figure-${figure}`).querySelector("span").append(...labels, jobs.size > 8 ? `and ${jobs.size - 8} more` : "");
}

function position(cell, key, name, title, note, unit) {
  if (cell.unmeasured.queue) return without(name, title, cell.unmeasured.queue);
  if (!Object.values(cell.stories).some((story) => story[key].t.length)) return without(name, title, "No commands of the disk were recorded.");
  const used = processesOf(cell);
  const points = (story) => used.flatMap((process) => [0, 1].map((write) => {
    const trace = story[key];
    const rows = trace.process.map((_, i) => i).filter((i) => trace.process[i] === process && (trace.op[i] !== 0) === !!write);
    return {
      type: "scatter", mode: "markers", x: rows.map((i) => trace.t[i]), y: rows.map((i) => trace.gb[i]),
      marker: { size: write ? 6 : 4.5, symbol: write ? "x-thin" : "circle", color: processColour(cell, process), line: { width: write ? 1.4 : 0, color: processColour(cell, process) } },
      hovertemplate: `%{x} ${unit}, %{y} GB<extra>${plain(processName(cell, process))} ${write ? "writes" : "reads"}</extra>`,
    };
  })).filter((trace) => trace.x.length);
  draw(name, title, note, ...multiples(cell, points,
    { title: { text: `virtual time, ${unit}` }, rangemode: "tozero" }, { title: { text: "place, GB" } }, 210));
  processLegend(cell, name);
}

// One line or a cloud of dots for each process; only for several processes.
function shared(cell) {
  const several = cell.jobs.length > 1;
  for (const name of ["service", "waits"]) byId(`figure-${name}`).hidden = !several;
  if (!several) return;
  service(cell);
  waits(cell);
}

function service(cell) {
  const title = "Service of each process over time";
  if (!Object.values(cell.stories).every((story) => story.service)) {
    return without("service", title, "Not recorded: too many commands, or too many turns.");
  }
  const lines = (story) => story.service.map((line, process) => ({
    type: "scatter", mode: "lines", x: line.t, y: line.mb, line: { color: processColour(cell, process), width: 2 },
    hovertemplate: `%{x} s: %{y} MB<extra>${plain(processName(cell, process))}</extra>`,
  }));
  draw("service", title, "Steep: served; flat: waiting. First repeat. ", ...multiples(cell, lines,
    { title: { text: "virtual time, s" }, rangemode: "tozero" }, { title: { text: "MB received" }, rangemode: "tozero" }, 210));
  processLegend(cell, "service");
}

function waits(cell) {
  const title = "Latency of each command of each process";
  if (cell.unmeasured.queue) return without("waits", title, cell.unmeasured.queue);
  const took = Object.values(cell.stories).flatMap((story) => story.overview.took.filter((value) => value > 0));
  const axis = took.length && Math.max(...took) / Math.min(...took) > 50 ? logAxis(took) : { rangemode: "tozero" };
  const dots = (story) => processesOf(cell).map((process) => {
    const rows = story.overview.process.map((_, i) => i).filter((i) => story.overview.process[i] === process);
    return {
      type: "scatter", mode: "markers", x: rows.map((i) => story.overview.t[i]), y: rows.map((i) => story.overview.took[i]),
      marker: { size: 4, color: processColour(cell, process) },
      hovertemplate: `%{x} s: %{y} ${cell.unit}<extra>${plain(processName(cell, process))}</extra>`,
    };
  });
  draw("waits", title, "From queueing to completion. First repeat. ", ...multiples(cell, dots,
    { title: { text: "virtual time, s" }, rangemode: "tozero" }, { ...axis, title: { text: cell.unit } }, 210));
  processLegend(cell, "waits");
}

// The slow figure of long runs, one picture per scheduler, pile-ups as red bands with a mark above:
// a pile-up of seconds is narrower than a pixel of a day.
function steady(cell) {
  const figure = byId("figure-steady");
  figure.hidden = !cell.steady;
  if (!cell.steady) return;
  const { curves, unit, time, figure: what, lines } = cell.steady;
  const all = Object.values(curves).flatMap((curve) => curve.y.filter((y) => y > 0));
  const log = Math.max(...all) / Math.min(...all) > 50;
  const axis = log ? logAxis(all) : { range: [0, Math.max(...all) * 1.12] };
  const [bottom, top] = log ? axis.range.map((power) => 10 ** power) : axis.range;
  const mark = log ? top / 1.12 : top * 0.96;
  const line = (_, name) => {
    const curve = curves[name], bands = curve.pileUps;
    return [
      { type: "scatter", mode: "lines", x: bands.flatMap(([from, to]) => [from, from, to, to, null]), y: bands.flatMap(() => [bottom, top, top, bottom, null]),
        fill: "toself", fillcolor: `${css("--alarm")}40`, line: { width: 1, color: css("--alarm") }, hoverinfo: "skip" },
      { type: "scatter", mode: "lines", x: curve.t, y: curve.y, line: { color: ofScheduler(name), width: 2 },
        hovertemplate: `%{x} ${time}: %{y} ${unit}<extra>${plain(name)}</extra>` },
      { type: "scatter", mode: "markers", x: bands.map(([from, to]) => (from + to) / 2), y: bands.map(() => mark),
        marker: { symbol: "triangle-down", size: 10, color: css("--alarm") }, customdata: bands.map(([from, to]) => seen((to - from) * { h: 3600, min: 60, s: 1 }[time])),
        hovertemplate: `pile-up at %{x} ${time}, %{customdata} s<extra>${plain(name)}</extra>` },
    ].filter((trace) => trace.x.length);
  };
  const marked = Object.values(curves).some((curve) => curve.pileUps.length);
  draw("steady", `Steadiness: ${what} of ${what === "mean" ? "I/Os" : cell.operation}, interval by interval`,
    `First repeat.${marked ? " Red: pile-ups." : " No pile-ups."}`,
    ...multiples(cell, line, { title: { text: `virtual time, ${time}` }, rangemode: "tozero" }, { ...axis, title: { text: unit } }, 190));
  figure.setAttribute("aria-label", lines.join(". "));
}

function depth(cell) {
  if (cell.unmeasured.queue) return without("depth", "Queue length", cell.unmeasured.queue);
  const areas = (story, name) => [
    { y: story.inFlight, fill: "tozeroy", label: "at the disk", fillcolor: `${ofScheduler(name)}aa`, line: { width: 1, color: ofScheduler(name) } },
    { y: story.waiting, fill: "tonexty", label: "waiting", fillcolor: css("--line"), line: { width: 1, color: css("--quiet") } },
  ].map(({ label, ...area }) => ({
    type: "scatter", mode: "lines", x: story.t, stackgroup: `depth-${name}`, hovertemplate: `%{y} ${label}<extra></extra>`, ...area,
  }));
  const high = Math.max(0, ...Object.values(cell.stories).map((story) => Math.max(0, ...story.waiting.map((w, i) => w + story.inFlight[i]))));
  draw("depth", `Queue length: up to ${seen(high)} commands`,
    "Coloured: at the disk. Grey on top: in the scheduler. Means over short intervals of the first repeat.",
    ...multiples(cell, areas, { title: { text: "virtual time, s" } }, { title: { text: "commands" }, rangemode: "tozero" }, 190));
}

function show(number) {
  shown = number;
  const cell = data.cells[number];
  byId("disk").value = cell.disk;
  byId("workload").value = cell.workload;
  byId("verdict").textContent = `${cell.disk}, ${cell.workload}: ${cell.verdict}`;
  byId("rank").replaceChildren(document.querySelector(`template[data-rank="${number}"]`).content.cloneNode(true));
  ranking(cell);
  cdf(cell);
  overTime(cell, "rate", "rate", "Throughput over time", "First repeat.", "MB/s");
  overTime(cell, "latency", "latency", "Latency over time", "Mean completion latency, first repeat.", cell.unit);
  steady(cell);
  shared(cell);
  const marks = "Dots: reads; crosses: writes.";
  position(cell, "overview", "overview", "Positions of the disk's commands over the whole run", `${marks} `, "s");
  const starts = Object.values(cell.stories).map((story) => seen(story.detail.start));
  position(cell, "detail", "detail", "Order of the commands", `${marks} From ${[...new Set(starts)].join(" or ")} s on. `, "ms");
  depth(cell);
}

// Pictures are drawn when they are about to become visible.
function whenSeen(element, then) {
  const observer = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) { observer.disconnect(); then(); }
  }, { rootMargin: "400px" });
  observer.observe(element);
}

function fill(select, values) {
  for (const value of values) {
    const option = document.createElement("option");
    option.value = option.textContent = value;
    select.append(option);
  }
  select.addEventListener("change", () => {
    const found = data.cells.findIndex((cell) => cell.disk === byId("disk").value && cell.workload === byId("workload").value);
    if (found >= 0) show(found);
  });
}

fill(byId("disk"), new Set(data.cells.map((cell) => cell.disk)));
fill(byId("workload"), new Set(data.cells.map((cell) => cell.workload)));
for (const legend of document.querySelectorAll(".legend")) {
  for (const name of data.schedulers) {
    const item = document.createElement("li"), chip = document.createElement("i");
    chip.className = `chip s${slot(name) % 8}`;
    item.append(chip, name);
    legend.append(item);
  }
}
document.querySelectorAll("[data-cell]").forEach((link) => link.addEventListener("click", () => show(Number(link.dataset.cell))));
dark.addEventListener("change", () => show(shown));
narrow.addEventListener("change", () => show(shown));
whenSeen(byId("panel"), () => show(shown));
