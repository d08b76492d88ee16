// Pictures of a trace that share their time axis.
const whole = data.whole;
const several = data.traces.length > 1;
for (const one of data.traces) one.times = one.depth.map((_, step) => step * one.step);
// Of several traces each line has a colour of its own, and reads and writes are one line.
const own = (index) => css(`--s${2 + index}`);
const pictures = [];
const colour = { reads: "--s0", writes: "--s1", others: "--s1" };

function picture(id, traces, yaxis, height, more) {
  const place = document.querySelector(`#figure-${id} .plot`);
  if (!place) return;
  const xaxis = { range: [0, whole], automargin: false, title: { text: data.unit, standoff: 4 } };
  Plotly.newPlot(place, traces, layout({ xaxis, yaxis: { fixedrange: true, ...yaxis }, dragmode: "zoom",
    margin: { l: 64, r: 12, t: 6, b: 40 }, ...more }, height), { displayModeBar: false, responsive: true });
  pictures.push(place);
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
  const of = (key) => data.traces.flatMap((one, index) => several
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
  picture("depth", data.traces.map((one, index) => line(one, one.depth, several ? plain(one.name) : "under way",
    { color: own(index) })), { rangemode: "tozero" }, short, { hovermode: "x" });
}

draw();
dark.addEventListener("change", draw);
narrow.addEventListener("change", draw);
