"use strict";
// Shared by the scripts of all pages.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 760px)");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const seen = (value) => Number(value.toPrecision(3)).toLocaleString("en");

// Plotly interprets some HTML in texts; names are escaped.
const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function layout(extra, height) {
  const axis = { gridcolor: css("--line"), linecolor: css("--line"), zerolinecolor: css("--line"), automargin: true };
  const merged = {
    height, margin: { l: 56, r: 16, t: 8, b: 44 }, showlegend: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: css("--ink"), family: "system-ui, Liberation Sans, sans-serif", size: 13 },
    hoverlabel: { font: { family: "system-ui, Liberation Sans, sans-serif" } }, ...extra,
  };
  for (const key of Object.keys(merged)) {
    if (/^[xy]axis/.test(key)) merged[key] = { ...axis, ...merged[key] };
  }
  return merged;
}

