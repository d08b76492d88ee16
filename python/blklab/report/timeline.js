// One picture: rows of processes from the top down, time from left to right.
const PX_PER_LANE = 15;
// Bottom to top: what is drawn, how, and what it is called. `of` gives the colour.
const KINDS = [
  ["ground", "--s2", 0.13, ""],
  ["idling", "--s4", 0.45, "disk kept idle for it", "/"],
  ["turn", "--s2", 0.6, "its turn"],
  ["batch of reads", "--s0", 0.35, "batch of reads"],
  ["batch of writes", "--s1", 0.35, "batch of writes"],
  ["raised weight", "--s3", 1, "weight raised"],
  ["held back", "--s6", 1, "held back"],
  ["queued", "--s7", 0.55, "waits in the scheduler"],
  ["dispatched: read", "--s5", 0.55, "read waits in the disk's queue"],
  ["dispatched: write", "--s4", 0.55, "write waits in the disk's queue"],
  ["at the disk: read", "--s0", 1, "read at the disk"],
  ["at the disk: write", "--s1", 1, "write at the disk"],
  ["on disk: read", "--s0", 1, "disk reads"],
  ["on disk: write", "--s1", 1, "disk writes"],
].filter(([kind]) => data.bars[kind]);
const WITH_LABELS = new Set(["turn", "batch of reads", "batch of writes"]);
const lined = (words) => plain(words).replace(/\n/g, "<br>");
const brief = (name) => { const most = narrow.matches ? 30 : 18; return name.length > most ? `${name.slice(0, most - 1)}\u2026` : name; };

let range = [data.from, data.first];

function bars([kind, colour, opacity, , pattern]) {
  const own = data.bars[kind], labels = WITH_LABELS.has(kind);
  return {
    type: "bar", orientation: "h", base: own.start, x: own.width, y: own.y, width: own.height,
    text: labels ? own.label.map(plain) : undefined, textposition: labels ? "inside" : "none", insidetextanchor: "end", textangle: 0,
    textfont: { color: css("--ink"), size: 11 }, constraintext: "none",
    hovertext: own.hover.map(lined), hovertemplate: "%{hovertext}<extra></extra>",
    marker: {
      color: css(colour), opacity, line: { width: labels ? 1 : 0, color: css("--page") },
      ...(pattern && { pattern: { shape: pattern, fillmode: "overlay", fgcolor: css("--page"), size: 6, solidity: 0.3 } }),
    },
  };
}

function marks() {
  return {
    type: "scatter", mode: "markers", x: data.marks.x, y: data.marks.y, hovertext: data.marks.hover.map(lined),
    hovertemplate: "%{hovertext}<extra></extra>", marker: { symbol: "diamond", size: 9, color: css("--ink"), line: { width: 1, color: css("--page") } },
  };
}

// A label that does not fit its band would lie over its neighbour.
function labelled(trace, kind, pixels) {
  const own = data.bars[kind[0]], scale = pixels / (range[1] - range[0]);
  if (!WITH_LABELS.has(kind[0])) return trace;
  return { ...trace, text: own.label.map((label, i) => (own.width[i] * scale > 6.5 * label.length + 8 ? plain(label) : "")) };
}

function draw() {
  const wide = !narrow.matches, plot = document.querySelector("#figure-timeline .plot");
  const left = wide ? 24 + 7.2 * Math.max(...data.rows.map((row) => brief(row.name).length)) : 8;
  const bottom = data.rows[data.rows.length - 1].bottom, pixels = plot.clientWidth - left - 12;
  const traces = KINDS.map((kind) => labelled(bars(kind), kind, pixels));
  if (data.marks.x.length) traces.push(marks());
  const names = data.rows.map((row) => ({
    xref: "paper", yref: "y", x: 0, y: wide ? (row.top + row.bottom) / 2 : row.top, xanchor: wide ? "right" : "left", yanchor: wide ? "middle" : "bottom",
    xshift: wide ? -8 : 0, showarrow: false, text: `<b>${plain(brief(row.name))}</b>`, font: { size: wide ? 13 : 11 },
  }));
  const lines = data.rows.slice(1).map((row) => ({
    type: "line", xref: "paper", x0: 0, x1: 1, y0: row.top + (wide ? 0.45 : 0.85), y1: row.top + (wide ? 0.45 : 0.85), line: { color: css("--line"), width: 1 }, layer: "below",
  }));
  const lane = wide ? PX_PER_LANE : PX_PER_LANE + 2;
  Plotly.react(plot, traces, layout({
    barmode: "overlay", bargap: 0, hovermode: "closest", dragmode: wide ? "pan" : false, annotations: names, shapes: lines,
    width: plot.clientWidth, autosize: false, margin: { l: left, r: 12, t: 6, b: 44 },
    xaxis: { range: [...range], title: { text: `${data.unit} of the run` }, tickformat: ",", side: "bottom" },
    yaxis: { range: [bottom - 0.3, wide ? 0.4 : 1.3], showticklabels: false, showgrid: false, zeroline: false, fixedrange: true },
  }, 60 + lane * (0.7 - bottom)), { displayModeBar: false, scrollZoom: false, doubleClick: false });
  byId("shown").textContent = `${shownText(range[0])} to ${shownText(range[1])} ${data.unit}`;
}

const shownText = (value) => value.toLocaleString("en", { maximumFractionDigits: range[1] - range[0] < 10 ? 3 : range[1] - range[0] < 1000 ? 1 : 0 });

const MOVES = {
  earlier: (a, b) => [a - (b - a) / 2, b - (b - a) / 2],
  later: (a, b) => [a + (b - a) / 2, b + (b - a) / 2],
  closer: (a, b) => [a + (b - a) / 4, b - (b - a) / 4],
  wider: (a, b) => [a - (b - a) / 2, b + (b - a) / 2],
  all: () => [data.from, data.until],
};

// Never beyond the window; a move to its edge keeps the width.
function move(name) {
  let [a, b] = MOVES[name](...range);
  if (a < data.from) [a, b] = [data.from, data.from + (b - a)];
  if (b > data.until) [a, b] = [Math.max(data.from, data.until - (b - a)), data.until];
  range = [a, b];
  draw();
}

function legend() {
  const items = KINDS.filter(([, , , name]) => name).map(([, colour, opacity, name, pattern]) => {
    const item = document.createElement("li"), swatch = document.createElement("i");
    swatch.className = "swatch";
    const paint = `color-mix(in srgb, var(${colour}) ${opacity * 100}%, transparent)`;
    swatch.style.background = pattern ? `repeating-linear-gradient(135deg, ${paint} 0 4px, transparent 4px 6px)` : paint;
    item.append(swatch, name);
    return item;
  });
  if (data.marks.x.length) {
    const item = document.createElement("li");
    item.append("\u25c6 another decision");
    items.push(item);
  }
  byId("legend").replaceChildren(...items);
}

document.querySelectorAll("[data-move]").forEach((button) => button.addEventListener("click", () => move(button.dataset.move)));
legend();
draw();
document.querySelector("#figure-timeline .plot").on("plotly_relayout", (change) => {
  const [a, b] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
  if (a === undefined || (a === range[0] && b === range[1])) return;
  range = [Number(a), Number(b)];
  draw();
});
dark.addEventListener("change", draw);
window.addEventListener("resize", draw);
