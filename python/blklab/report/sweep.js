// Curves over the number in which loads differ, one line per scheduler: throughput, and p99.
let curve = 0;

function axisOfNumbers(sweep, domain, anchor) {
  const { numbers } = sweep, high = numbers[numbers.length - 1];
  // Sizes that double are as far apart as others.
  const log = high / numbers[0] > 4;
  const every = Math.ceil(numbers.length / (narrow.matches ? 8 : 10));
  const shownNumbers = numbers.filter((_, index) => (numbers.length - 1 - index) % every === 0);
  const place = (number) => (log ? Math.log10(number) : number), pad = 0.03 * (place(high) - place(numbers[0]));
  return {
    domain, anchor, type: log ? "log" : "linear", title: { text: plain(sweep.parameter) }, tickangle: 0,
    tickvals: shownNumbers, ticktext: shownNumbers.map(String), range: [place(numbers[0]) - pad, place(high) + pad],
  };
}

// With room for the intervals.
function axisOfValues(values) {
  const known = values.filter((value) => value > 0), top = Math.max(1e-9, ...known);
  return known.length && top / Math.min(...known) > 50 ? logAxis(known) : { type: "linear", range: [0, top * 1.05] };
}

// One of the two: its lines, its axes, and the names at their ends.
function halfOfSweep(sweep, key, number, across, up, height) {
  const names = Object.keys(sweep.lines), id = number > 1 ? number : "";
  const middle = (name) => sweep.lines[name][key].map((interval) => interval[0]);
  const axis = axisOfValues(names.flatMap((name) => sweep.lines[name][key].flat()));
  const traces = names.map((name) => {
    const intervals = sweep.lines[name][key];
    return {
      type: "scatter", mode: "lines+markers", name: plain(name), xaxis: `x${id}`, yaxis: `y${id}`, x: sweep.numbers, y: middle(name),
      line: { color: ofScheduler(name), dash: dash(name), width: 2.5 }, marker: { size: 7 },
      error_y: {
        type: "data", symmetric: false, thickness: 1.5, width: 4, color: ofScheduler(name),
        array: intervals.map(([at, , high]) => high - at), arrayminus: intervals.map(([at, low]) => at - low),
      },
      hovertemplate: `%{x}: %{y} ${key === "p99" ? sweep.p99Unit : plain(sweep.unit)}<extra>${plain(name)}</extra>`,
    };
  });
  const ends = names.map((name) => ({ name, last: middle(name).at(-1) })).filter((end) => end.last !== null)
    .map(({ name, last }) => ({ name, y: axis.type === "log" ? Math.log10(last || 1e-9) : last }));
  return {
    traces, annotations: endLabels(ends, axis.range, height, `y${id}`, across[1]),
    axes: {
      [`xaxis${id}`]: axisOfNumbers(sweep, across, `y${id}`),
      [`yaxis${id}`]: { ...axis, domain: up, anchor: `x${id}`, title: { text: plain(sweep[key]) } },
    },
  };
}

function showSweep(number) {
  curve = number;
  const sweep = data.sweeps[number], wide = !narrow.matches, two = Boolean(sweep.p99);
  const room = widest(Object.keys(sweep.lines)), high = 340;
  // The names at the left picture's lines need room as well.
  const share = 0.5 - (room + 90) / (2 * Math.max(byId("figure-sweep").clientWidth, 700));
  const [left, right, top, bottom] = !two ? [[0, 1], null, [0, 1], null]
    : wide ? [[0, share], [1 - share, 1], [0, 1], [0, 1]] : [[0, 1], [0, 1], [0.57, 1], [0, 0.43]];
  const halves = [halfOfSweep(sweep, "rate", 1, left, top, high)];
  if (two) halves.push(halfOfSweep(sweep, "p99", 2, right, bottom, high));
  draw("sweep", sweep.name, `${sweep.told} Dots: medians of the repeats; bars: their intervals.`, halves.flatMap((half) => half.traces), {
    ...Object.assign({}, ...halves.map((half) => half.axes)), annotations: halves.flatMap((half) => half.annotations),
    margin: { l: 56, r: room, t: 8, b: 44 },
  }, two && !wide ? 2 * high : high);
}

if (data.sweeps.length) {
  const select = byId("sweep");
  data.sweeps.forEach((sweep, number) => select.add(new Option(sweep.name, number)));
  select.parentElement.hidden = data.sweeps.length === 1;
  select.addEventListener("change", () => showSweep(Number(select.value)));
  for (const media of [dark, narrow]) media.addEventListener("change", () => showSweep(curve));
  whenSeen(byId("figure-sweep"), () => showSweep(curve));
}
