// Pictures of a trace that share their time axis.
const whole = data.whole;
const beside = data.traces.length > 1;
for (const one of data.traces) one.times = one.depth.map((_, step) => step * one.step);
// Of several traces each line has a colour of its own, and reads and writes are one line.
const own = (index) => css(`--s${2 + index}`);
const pictures = [];
const colour = { reads: "--s0", writes: "--s1", others: "--s1" };

function picture(id, traces, yaxis, height, more) {
  const place = document.querySelector(`#figure-${id} .plot`);
  if (!place) return;
  const xaxis = { range: [0, whole], automargin: false, title: { text: data.unit, standoff: 4 } };
  Plotly.newPlot(place, traces, layout({ xaxis, yaxis: { fixedrange: true, ...yaxis }, dragmode: id.startsWith("latencies") ? false : "zoom",
    margin: { l: 64, r: 12, t: 6, b: 40 }, shapes: band(), ...more }, height), { displayModeBar: false, responsive: true });
  pictures.push(place);
  if (id.startsWith("latencies")) chosenOn(place);
  place.on("plotly_relayout", (change) => {
    if (change["xaxis.autorange"]) show(0, whole, place);
    else if ("xaxis.range[0]" in change) show(change["xaxis.range[0]"], change["xaxis.range[1]"], place);
  });
}

// All pictures show the same time.
let moving = false;
function show(from, until) {
  if (moving) return;
  moving = true;
  const range = [Math.max(0, from), Math.min(whole, until)];
  Promise.all(pictures.map((one) => Plotly.relayout(one, { "xaxis.range": range }))).then(() => { moving = false; });
}

// The window of the latencies whose rows are shown, in steps: from the first to before the second.
const first = data.traces.find((one) => one.served);
const steps = Math.max(...data.traces.map((one) => one.times.length));
let chosen = [0, steps];

// Drags choose the window: mouse, pen and finger alike; a finger that moves upwards scrolls the page.
function chosenOn(place) {
  const stepAt = (event) => {
    const { _offset, _length, range } = place._fullLayout.xaxis;
    const part = (event.clientX - place.getBoundingClientRect().left - _offset) / _length;
    return (range[0] + part * (range[1] - range[0])) / first.step;
  };
  if (place.dataset.chooses) return;
  place.dataset.chooses = "yes";
  let begun = null;
  place.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    begun = stepAt(event);
    place.setPointerCapture(event.pointerId);
  });
  place.addEventListener("pointermove", (event) => {
    if (begun !== null) choose(Math.min(begun, stepAt(event)), Math.max(begun, stepAt(event)));
  });
  for (const kind of ["pointerup", "pointercancel"]) place.addEventListener(kind, () => { begun = null; });
}

let asked = false;
function choose(from, until) {
  const low = Math.max(0, Math.min(steps - 1, Math.floor(from)));
  chosen = [low, Math.max(low + 1, Math.min(steps, Math.ceil(until)))];
  [byId("from").value, byId("until").value] = chosen;
  if (!asked) requestAnimationFrame(() => { asked = false; answer(); mark(); });
  asked = true;
}

const mark = () => pictures.forEach((one) => Plotly.relayout(one, { shapes: band() }));
const band = () => first ? [{ type: "rect", xref: "x", yref: "paper", x0: chosen[0] * first.step, x1: chosen[1] * first.step,
  y0: 0, y1: 1, layer: "above", fillcolor: css("--ink"), opacity: 0.1, line: { width: 0 } },
...[0, 1].map((end) => ({ type: "line", xref: "x", yref: "paper", x0: chosen[end] * first.step, x1: chosen[end] * first.step,
  y0: 0, y1: 1, line: { color: css("--ink"), width: 1 } }))] : [];

// Texts as those of Python: three digits.
const scaled = (value, units, step) => {
  let place = 0;
  while (value >= step && place < units.length - 1) { value /= step; place++; }
  return `${seen(value)} ${units[place]}`;
};
const lasts = (us) => scaled(us * 1000, ["ns", "us", "ms", "s"], 1000);
const sized = (bytes) => scaled(bytes, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
const several = (count, one) => `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;
const at = (time) => `${Number(time.toPrecision(6))} ${data.unit}`;

function element(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

// Sums of each row over the window; the columns are those of _counts in trace.py.
function totals(rows, names, step) {
  const found = names.map((name) => ({ name, came: 0, ios: [0, 0], bytes: [0, 0], waited: 0, wait: 0, most: 0, completed: 0, disk: 0 }));
  for (const [when, row, came, reads, others, read, written, waited, wait, most, completed, disk] of rows) {
    const time = when * step / first.step;
    if (time < chosen[0] || time >= chosen[1]) continue;
    const sum = found[row];
    sum.came += came;
    sum.ios[0] += reads; sum.ios[1] += others;
    sum.bytes[0] += read; sum.bytes[1] += written;
    sum.waited += waited; sum.wait += wait; sum.most = Math.max(sum.most, most);
    sum.completed += completed; sum.disk += disk;
  }
  for (const sum of found) [sum.served, sum.moved] = [sum.ios[0] + sum.ios[1], sum.bytes[0] + sum.bytes[1]];
  return found.filter((sum) => sum.came || sum.served).sort((a, b) => b.moved - a.moved || b.served - a.served);
}

function table(head, rows) {
  const all = rows.reduce((sum, row) => sum + row.moved, 0) || 1;
  const made = element("table", undefined, "figures served");
  const top = made.createTHead().insertRow();
  for (const name of [head, "share of the data", "data", "came", "served", "wait, mean", "longest", "at the disk"]) top.append(element("th", name));
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    line.append(element("th", row.name));
    const share = element("td", undefined, "share");
    const bar = element("span", undefined, "bar");
    for (const kind of [0, 1]) {
      const part = element("i", undefined, `s${kind}`);
      part.style.width = `${100 * row.bytes[kind] / all}%`;
      bar.append(part);
    }
    share.append(bar, element("b", `${Math.round(100 * row.moved / all)} %`));
    line.append(share);
    for (const text of [sized(row.moved), row.came.toLocaleString("en"), row.served.toLocaleString("en")]) line.append(element("td", text));
    const mean = (sum, count) => count ? lasts(sum / count) : "";
    for (const text of [mean(row.wait, row.waited), row.waited ? lasts(row.most) : "", mean(row.disk, row.completed)]) line.append(element("td", text));
  }
  const scroll = element("div", undefined, "scroll");
  scroll.append(made);
  return scroll;
}

function gotten(got, names) {
  if (!got.ios) return "nothing";
  const kinds = (row) => [["read", 1], ["write", 2]].filter(([, column]) => row[column])
    .map(([name, column]) => `${several(row[column], name)} (${sized(row[column + 2])})`).join(" and ");
  const rows = got.rows.map((row) => `${names[row[0]]}: ${kinds(row)}`);
  if (got.more) rows.push(`${several(got.more, "process").replace("processs", "processes")} more`);
  return `${several(got.ios, "I/O")}: ${rows.join("; ")}`;
}

// The slowest I/O of each process in the window.
function slowest(one, names) {
  const told = new Set();
  const within = one.served.slow.filter((slow) => {
    const step = slow.step * one.step / first.step;
    const is = step >= chosen[0] && step < chosen[1] && !told.has(slow.process);
    if (is) told.add(slow.process);
    return is;
  });
  const made = element("ol", undefined, "slow");
  for (const slow of within.slice(0, 5)) {
    const item = element("li");
    const [wait, disk] = [slow.waited ?? 0, slow.disk];
    item.append(element("strong", `${names[slow.process]}: ${slow.op}${slow.bytes ? ` of ${sized(slow.bytes)}` : ""}, ${lasts(slow.took)}`),
      element("span", ` from ${at(slow.at)} on`));
    const bar = element("span", undefined, "phases");
    for (const [kind, part] of [["waits", wait], ["serves", disk]]) {
      const piece = element("i", undefined, kind);
      piece.style.width = `${100 * part / (wait + disk || 1)}%`;
      bar.append(piece);
    }
    item.append(bar);
    if (wait) item.append(element("p", `${lasts(wait)} in the queue; meanwhile the disk got ${gotten(slow.issued, names)}`, "waits"));
    item.append(element("p", `${lasts(disk)} at the disk, which meanwhile completed ${gotten(slow.completed, names)}`, "serves"));
    made.append(item);
  }
  return [within, made];
}

function answer() {
  const place = byId("answer");
  if (!place) return;
  place.replaceChildren();
  for (const one of data.traces) {
    if (!one.served) continue;
    const names = one.served.processes;
    const rows = totals(one.served.of_processes, names, one.step);
    const [within, list] = slowest(one, names);
    const of = data.traces.length > 1 ? `${one.name}, ` : "";
    place.append(element("h2", `${of}${at(chosen[0] * first.step)} to ${at(Math.min(whole, chosen[1] * first.step))}`));
    if (!rows.length) { place.append(element("p", "Nothing came, and nothing was served.", "note")); continue; }
    const moved = rows.reduce((sum, row) => sum + row.moved, 0);
    const told = [`The disk served ${several(rows.reduce((sum, row) => sum + row.served, 0), "I/O")}, ${sized(moved)}`];
    if (moved) told.push(`${Math.round(100 * rows[0].moved / moved)} % of it for ${rows[0].name}`);
    const worst = within[0];
    const end = worst ? `; the slowest ${worst.op} was of ${names[worst.process]}, ${lasts(worst.took)}.` : ".";
    place.append(element("p", told.join(", ") + end, "verdict"), table("process", rows));
    if (one.served.cgroups.length) place.append(table("cgroup", totals(one.served.of_cgroups, one.served.cgroups, one.step)));
    if (within.length) place.append(element("h3", "The slowest I/O of each process, and what was served instead"), list);
  }
}

// Where the slowest I/O came, with some time around it.
function worst() {
  const slow = first.served.slow[0];
  const around = Math.max(1, Math.round(steps / 80));
  if (slow) choose(slow.step - around, slow.step + around + 1);
}

if (first) {
  for (const id of ["from", "until"]) {
    byId(id).max = steps;
    byId(id).addEventListener("input", () => {
      const [from, until] = [Number(byId("from").value), Number(byId("until").value)];
      // The other end gives way.
      if (from < until) choose(from, until);
      else if (id === "from") choose(from, from + 1);
      else choose(until - 1, until);
    });
  }
  byId("worst").addEventListener("click", worst);
  byId("whole").addEventListener("click", () => choose(0, steps));
}

// A grid as an image, drawn once: a pixel for each cell, reads and others in their colours.
function image(grid) {
  const steps = grid.reads.length, rows = grid.reads[0].length;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [steps, rows];
  const pen = canvas.getContext("2d");
  const pixels = pen.createImageData(steps, rows);
  const parts = (name) => {
    const probe = document.createElement("canvas").getContext("2d");
    probe.fillStyle = css(name);
    probe.fillRect(0, 0, 1, 1);
    return probe.getImageData(0, 0, 1, 1).data;
  };
  const [read, other] = [parts("--s0"), parts("--s1")];
  let most = 1;
  for (const key of ["reads", "others"]) for (const column of grid[key]) for (const count of column) most = Math.max(most, count);
  const strength = (count) => count ? 0.35 + 0.65 * Math.log1p(count) / Math.log1p(most) : 0;
  for (let step = 0; step < steps; step++) {
    for (let row = 0; row < rows; row++) {
      const [a, b] = [strength(grid.reads[step][row]), strength(grid.others[step][row])];
      if (!a && !b) continue;
      const at = 4 * ((rows - 1 - row) * steps + step);
      for (let part = 0; part < 3; part++) pixels.data[at + part] = (a * read[part] + b * other[part]) / (a + b);
      pixels.data[at + 3] = 255 * Math.max(a, b);
    }
  }
  pen.putImageData(pixels, 0, 0);
  return canvas.toDataURL();
}

const laid = (one, grid, low, high) => ({ source: image(grid), xref: "x", yref: "y", x: 0, y: high,
  sizex: one.step * grid.reads.length, sizey: high - low, sizing: "stretch", layer: "below" });
const line = (one, y, name, extra) => ({ x: one.times, y, name, type: "scatter", mode: "lines", line: { shape: "hv", width: 1.4, ...extra },
  hovertemplate: `%{y} ${name}<extra></extra>` });
// A trace without a mark, so that an axis has its range.
const empty = { x: [0, whole], y: [null, null], type: "scatter", mode: "lines", hoverinfo: "skip" };

function draw() {
  pictures.length = 0;
  const short = narrow.matches ? 170 : 210;
  const most = Math.max(...data.traces.map((one) => one.places.gb));
  data.traces.forEach((one, index) => picture(`places${index}`, [empty], { range: [0, most] }, narrow.matches ? 220 : 300,
    { images: [laid(one, one.places, 0, one.places.gb)] }));
  const total = (one, key) => one.depth.map((_, step) => one.kinds.reduce((sum, kind) => sum + kind[key][step], 0));
  const of = (key) => data.traces.flatMap((one, index) => beside
    ? [line(one, total(one, key), plain(one.name), { color: own(index) })]
    : one.kinds.map((kind) => line(one, kind[key], kind.name,
      { color: css(colour[kind.name]), dash: kind.name === "others" ? "dot" : "solid" })));
  picture("rate", of("mb_s"), { rangemode: "tozero" }, short, { hovermode: "x" });
  picture("ios", of("ios"), { rangemode: "tozero" }, short, { hovermode: "x" });
  const bounds = (key, pick) => Math.log10(pick(...data.traces.map((one) => one.latencies[key])));
  const range = [bounds("low_ms", Math.min), bounds("high_ms", Math.max)];
  const ticks = [];
  for (let power = Math.ceil(range[0]); power <= Math.floor(range[1]); power++) ticks.push(power);
  const logs = (values) => values.map((value) => value === null ? null : Math.log10(value));
  data.traces.forEach((one, index) => {
    const [low, high] = [Math.log10(one.latencies.low_ms), Math.log10(one.latencies.high_ms)];
    const percent = (name, words, dash) => ({ ...line(one, logs(one.percentiles[name]), words, { color: css("--ink"), dash }),
      customdata: one.percentiles[name], hovertemplate: `%{customdata} ms ${words}<extra></extra>` });
    picture(`latencies${index}`, [percent("50", "median", "solid"), percent("99", "99th percentile", "dot")],
      { range, tickvals: ticks, ticktext: ticks.map((power) => seen(10 ** power)) },
      narrow.matches ? 240 : 320, { images: [laid(one, one.latencies, low, high)], hovermode: "x" });
  });
  picture("depth", data.traces.map((one, index) => line(one, one.depth, beside ? plain(one.name) : "under way",
    { color: own(index) })), { rangemode: "tozero" }, short, { hovermode: "x" });
}

draw();
if (first) worst();
dark.addEventListener("change", draw);
narrow.addEventListener("change", draw);
