# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
"""The page of `tf.cuda.trace`: HTML, style and script in one file, with @DATA@ for the events.

It asks nothing of other hosts. The script draws what is in view on a canvas, so that a million
events are no more work than those one can see.
"""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Timeline of stream groups</title>
<style>
:root {
  --page: #ffffff; --lane: #f4f5f7; --line: #d9dce1; --text: #1b1f24; --quiet: #5b636e;
  --step: #3f8f5f; --kernel: #3d6fd1; --copy: #d98324; --wait: #cf3d4e; --callback: #8a929d;
  --replay: #8a56c2; --hold: #a08a2e; --on: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #15181c; --lane: #1d2127; --line: #363c45; --text: #e6e9ed; --quiet: #9aa3af;
    --step: #5fb583; --kernel: #6f9cf0; --copy: #eca557; --wait: #f06a78; --callback: #79828e;
    --replay: #b48ae6; --hold: #c9b35a; --on: #15181c;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 14px/1.4 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
header { padding: 12px 16px 8px; }
h1 { font-size: 17px; margin: 0 0 2px; overflow-wrap: anywhere; }
#sum { color: var(--quiet); margin: 0 0 8px; }
#bar { display: flex; flex-wrap: wrap; gap: 6px 14px; align-items: center; }
#legend { display: flex; flex-wrap: wrap; gap: 4px 12px; }
.key { display: inline-flex; align-items: center; gap: 5px; color: var(--quiet); }
.key i { width: 11px; height: 11px; border-radius: 3px; }
button { font: inherit; min-width: 34px; height: 32px; padding: 0 9px; color: var(--text);
  background: var(--lane); border: 1px solid var(--line); border-radius: 6px; cursor: pointer; }
#axis { position: sticky; top: 0; z-index: 1; background: var(--page); }
#axis, #lanes { display: block; width: 100%; }
#lanes { touch-action: pan-y; cursor: grab; }
#lanes:active { cursor: grabbing; }
#tip { position: fixed; z-index: 2; display: none; max-width: min(420px, calc(100vw - 16px));
  padding: 7px 10px; background: var(--page); border: 1px solid var(--line); border-radius: 6px;
  box-shadow: 0 3px 14px rgba(0, 0, 0, .25); pointer-events: none; overflow-wrap: anywhere; }
#tip b { display: block; }
#tip span { color: var(--quiet); }
footer { padding: 8px 16px 20px; color: var(--quiet); font-size: 12px; }
</style>
</head>
<body>
<header>
<h1 id="title"></h1>
<p id="sum"></p>
<div id="bar">
<span><button id="in" aria-label="Zoom in">+</button>
<button id="out" aria-label="Zoom out">&minus;</button>
<button id="all">All</button></span>
<span id="legend"></span>
</div>
</header>
<canvas id="axis" height="26"></canvas>
<canvas id="lanes"></canvas>
<div id="tip" role="tooltip"></div>
<footer>Drag to move; Ctrl and the wheel, or two fingers, to zoom; point at a bar, or tap it, to see
what it is.</footer>
<script type="application/json" id="data">@DATA@</script>
<script type="module">
const data = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);
const axis = byId("axis"), lanes = byId("lanes"), tip = byId("tip");
const KIND = 0, BEGIN = 1, LENGTH = 2, NAME = 3, MORE = 4;
const WAIT = data.kinds.indexOf("wait");
const SMALL = ["callback", "hold"].map(kind => data.kinds.indexOf(kind));
const several = new Set(data.rows.map(r => r.gpu)).size > 1;
const total = Math.max(data.micros, 1);
let from = 0, span = total;  // what is in view, in microseconds
let colours = {}, left = 0, width = 0;

// Of each row the longest event, so that a search finds those that reach into view.
for (const row of data.rows) {
  row.label = (several ? "GPU " + row.gpu + " " : "") + row.name;
  row.goesOn = row.name.endsWith(")");  // the row above, where events overlap
  row.slim = row.events.every(e => SMALL.includes(e[KIND]));
  row.longest = row.events.reduce((most, e) => Math.max(most, e[LENGTH]), 0);
}
let bottom = 0;

function place() {
  // On a phone the names are above their rows.
  left = width < 600 ? 0 : 150;
  bottom = 0;
  for (const row of data.rows) {
    if (!row.goesOn) bottom += left === 0 ? 19 : 3;
    row.top = bottom;
    row.height = row.slim ? 14 : 26;
    bottom += row.height + (row.slim ? 1 : 2);
  }
}

function time(us) {
  const sign = us < 0 ? "-" : "";
  us = Math.abs(us);
  const [unit, name] = us >= 1e6 ? [1e6, " s"] : us >= 1e3 ? [1e3, " ms"] : [1, " \\u00b5s"];
  return sign + Number((us / unit).toPrecision(4)) + name;
}

function look() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["page", "lane", "line", "text", "quiet", "on", ...data.kinds])
    colours[name] = style.getPropertyValue("--" + name).trim();
  width = document.documentElement.clientWidth;
  place();
  draw();
}

function size(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = height + "px";
  const to = canvas.getContext("2d");
  to.scale(ratio, ratio);
  to.font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
  to.textBaseline = "middle";
  return to;
}

const x = us => left + (us - from) / span * (width - left);
const micros = px => from + (px - left) / (width - left) * span;

function first(row, us) {
  let low = 0, high = row.events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row.events[middle][BEGIN] < us) low = middle + 1; else high = middle;
  }
  return low;
}

function shorten(to, text, room) {
  if (to.measureText(text).width <= room) return text;
  const fits = Math.floor(room / 7) - 1;
  return fits < 2 ? "" : text.slice(0, fits) + "\\u2026";
}

function drawAxis() {
  const to = size(axis, 26);
  to.fillStyle = colours.page;
  to.fillRect(0, 0, width, 26);
  let step = Math.pow(10, Math.floor(Math.log10(span / Math.max((width - left) / 90, 1))));
  while (span / step > (width - left) / 90) step *= step.toExponential()[0] === "2" ? 2.5 : 2;
  to.fillStyle = colours.quiet;
  for (let us = Math.ceil(from / step) * step; us <= from + span; us += step) {
    to.fillRect(x(us), 20, 1, 6);
    if (x(us) < width - 40) to.fillText(us === 0 ? "0" : time(us), x(us) + 3, 11);
  }
}

function draw() {
  drawAxis();
  const to = size(lanes, bottom + 4);
  const end = micros(width);
  for (const row of data.rows) {
    const y = row.top;
    to.fillStyle = colours.lane;
    to.fillRect(left, y, width - left, row.height);
    let drawn = -1;
    const waits = [];
    for (let j = first(row, from - row.longest); j < row.events.length; ++j) {
      const event = row.events[j];
      if (event[BEGIN] > end) break;
      if (event[BEGIN] + event[LENGTH] < from) continue;
      if (event[KIND] === WAIT) { waits.push(event); continue; }
      const begins = Math.max(x(event[BEGIN]), left);
      const ends = Math.min(Math.max(x(event[BEGIN] + event[LENGTH]), begins + 1), width);
      if (ends <= drawn) continue;  // others are there already
      drawn = Math.ceil(ends);
      const inset = row.slim ? 2 : 1;
      to.fillStyle = colours[data.kinds[event[KIND]]];
      to.fillRect(begins, y + inset, Math.max(ends - begins - (ends - begins > 4 ? 1 : 0), 1),
                  row.height - 2 * inset);
      if (ends - begins > 34 && !row.slim) {
        to.fillStyle = colours.on;
        to.fillText(shorten(to, data.names[event[NAME]], ends - begins - 8), begins + 4,
                    y + row.height / 2 + 1);
      }
    }
    // Over what the stream runs: a line with a foot.
    to.fillStyle = colours.wait;
    for (const event of waits) {
      const at = x(event[BEGIN]);
      if (at < left) continue;
      to.fillRect(at - 0.5, y - 1, 1.5, row.height + 2);
      to.beginPath();
      to.moveTo(at - 4, y - 2);
      to.lineTo(at + 4, y - 2);
      to.lineTo(at, y + 4);
      to.fill();
    }
    if (left > 0) {
      to.fillStyle = colours.page;
      to.fillRect(0, y - 2, left, row.height + 4);
    }
    to.fillStyle = row.slim ? colours.quiet : colours.text;
    if (row.goesOn) continue;
    if (left > 0) to.fillText(shorten(to, row.label, left - 22), 16, y + row.height / 2 + 1);
    else to.fillText(row.label, 6, y - 9);
  }
}

function found(px, py) {
  for (const row of data.rows) {
    if (py < row.top || py > row.top + row.height) continue;
    let near = null, away = 6;
    for (let j = first(row, micros(px - 6) - row.longest); j < row.events.length; ++j) {
      const event = row.events[j];
      const begins = x(event[BEGIN]), ends = x(event[BEGIN] + event[LENGTH]);
      if (begins > px + 6) break;
      const off = event[KIND] === WAIT ? Math.abs(begins - px) - 4
                                       : Math.max(begins - px, px - ends, 0);
      if (off < away) { away = off; near = event; }
    }
    return near && [row, near];
  }
  return null;
}

function show(px, py, clientX, clientY) {
  const hit = px < left ? null : found(px, py);
  if (!hit) { tip.style.display = "none"; return; }
  const [row, event] = hit;
  const parts = [row.label, "at " + time(event[BEGIN])];
  if (event[KIND] !== WAIT) parts.push(time(event[LENGTH]) + " long");
  if (data.names[event[MORE]]) parts.push(data.names[event[MORE]]);
  tip.replaceChildren(document.createElement("b"), document.createElement("span"));
  tip.firstChild.textContent = data.names[event[NAME]];
  tip.lastChild.textContent = data.kinds[event[KIND]] + ", " + parts.join(", ");
  tip.style.display = "block";
  const right = document.documentElement.clientWidth - tip.offsetWidth - 8;
  tip.style.left = Math.max(8, Math.min(clientX + 12, right)) + "px";
  const low = window.innerHeight - tip.offsetHeight - 8;
  tip.style.top = (clientY + 16 > low ? Math.max(8, clientY - tip.offsetHeight - 12)
                                      : clientY + 16) + "px";
}

function zoom(factor, around) {
  const at = micros(around);
  span = Math.min(total, Math.max(span * factor, 0.05));
  from = Math.min(Math.max(at - (around - left) / (width - left) * span, 0), total - span);
  tip.style.display = "none";
  draw();
}

function move(px) {
  from = Math.min(Math.max(from - px / (width - left) * span, 0), total - span);
  draw();
}

const pointers = new Map();
lanes.addEventListener("pointerdown", e => {
  lanes.setPointerCapture(e.pointerId);
  pointers.set(e.pointerId, e.offsetX);
  show(e.offsetX, e.offsetY, e.clientX, e.clientY);
});
lanes.addEventListener("pointermove", e => {
  const before = pointers.get(e.pointerId);
  if (before === undefined) return show(e.offsetX, e.offsetY, e.clientX, e.clientY);
  if (pointers.size === 2) {
    const [other] = [...pointers].filter(([id]) => id !== e.pointerId).map(([, at]) => at);
    const was = Math.abs(before - other), is = Math.abs(e.offsetX - other);
    if (was > 4 && is > 4) zoom(was / is, (e.offsetX + other) / 2);
  } else if (Math.abs(e.offsetX - before) > 0) {
    tip.style.display = "none";
    move(e.offsetX - before);
  }
  pointers.set(e.pointerId, e.offsetX);
});
for (const end of ["pointerup", "pointercancel"])
  lanes.addEventListener(end, e => pointers.delete(e.pointerId));
lanes.addEventListener("pointerleave", () => { tip.style.display = "none"; });
lanes.addEventListener("wheel", e => {
  if (e.ctrlKey || e.metaKey) {
    e.preventDefault();
    zoom(Math.pow(1.002, e.deltaY), e.offsetX);
  } else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
    e.preventDefault();
    move(-e.deltaX);
  }
}, {passive: false});
byId("in").onclick = () => zoom(0.5, (left + width) / 2);
byId("out").onclick = () => zoom(2, (left + width) / 2);
byId("all").onclick = () => { from = 0; span = total; draw(); };

byId("title").textContent = data.title;
const count = data.rows.reduce((sum, row) => sum + row.events.length, 0);
byId("sum").textContent = count.toLocaleString("en") + " events in " + time(data.micros)
  + (data.dropped ? "; " + data.dropped.toLocaleString("en") + " more are left out" : "");
for (const kind of data.kinds) {
  if (!data.rows.some(row => row.events.some(e => data.kinds[e[KIND]] === kind))) continue;
  const key = document.createElement("span"), box = document.createElement("i");
  key.className = "key";
  box.style.background = "var(--" + kind + ")";
  key.append(box, kind);
  byId("legend").append(key);
}
window.addEventListener("resize", look);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", look);
look();
</script>
</body>
</html>
"""
