"use strict";

// Tabs: pointer, arrow keys, Home and End.
const tabs = [...document.querySelectorAll('[role="tab"]')];
function choose(tab) {
  for (const one of tabs) {
    const on = one === tab;
    one.setAttribute("aria-selected", String(on));
    one.tabIndex = on ? 0 : -1;
    document.getElementById(one.getAttribute("aria-controls")).hidden = !on;
  }
  tab.focus();
  if (viewer) viewer.draw();
}
tabs.forEach((tab, k) => {
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", (event) => {
    const to = { ArrowRight: k + 1, ArrowLeft: k - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(tabs[(to + tabs.length) % tabs.length]);
  });
});

// Figures open large.
const large = document.getElementById("large");
for (const button of document.querySelectorAll(".enlarge")) {
  button.addEventListener("click", () => {
    large.querySelector("div").replaceChildren(button.querySelector("svg").cloneNode(true));
    large.showModal();
  });
}

function floats(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

// First place in a sorted list whose value is not below.
function place(list, value) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

function short(value) {
  return Number.isFinite(value) ? Number(value.toPrecision(5)).toString() : "missing";
}

// The recording: values in grey, the hidden path as a coloured band, both along the same time.
class Viewer {
  constructor(canvas, recording) {
    this.canvas = canvas;
    this.recording = recording;
    this.unpacked = new Map();
    this.show(0);
    const box = () => canvas.getBoundingClientRect();
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 0.7 : 1 / 0.7, (event.clientX - box().left) / box().width);
    }, { passive: false });
    let from = null;
    canvas.addEventListener("pointerdown", (event) => { from = event.clientX; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointerup", () => { from = null; });
    canvas.addEventListener("pointermove", (event) => {
      if (from !== null) {
        this.move(-(event.clientX - from) / box().width);
        from = event.clientX;
      }
      this.tell((event.clientX - box().left) / box().width);
    });
    canvas.addEventListener("keydown", (event) => {
      const act = { ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2), "+": () => this.zoom(0.5, 0.5),
        "=": () => this.zoom(0.5, 0.5), "-": () => this.zoom(2, 0.5), Home: () => this.all() }[event.key];
      if (act) { event.preventDefault(); act(); this.tell(0.5); }
    });
    window.addEventListener("resize", () => this.draw());
  }
  show(k) {
    if (!this.unpacked.has(k)) {
      const raw = this.recording.series[k];
      this.unpacked.set(k, { ...raw, times: floats(raw.times), values: floats(raw.values), sure: floats(raw.sure),
        run_starts: floats(raw.run_starts) });
    }
    this.series = this.unpacked.get(k);
    this.all();
  }
  all() {
    this.from = 0;
    this.to = Math.max(this.series.end - this.series.start, 1e-30);
    this.draw();
  }
  zoom(factor, at) {
    const whole = Math.max(this.series.end - this.series.start, 1e-30);
    const width = Math.min(Math.max((this.to - this.from) * factor, whole * 1e-5), whole);
    const centre = this.from + at * (this.to - this.from);
    this.from = Math.min(Math.max(centre - at * width, 0), whole - width);
    this.to = this.from + width;
    this.draw();
  }
  move(share) {
    const whole = this.series.end - this.series.start, width = this.to - this.from;
    this.from = Math.min(Math.max(this.from + share * width, 0), whole - width);
    this.to = this.from + width;
    this.draw();
  }
  stateAt(time) {
    const starts = this.series.run_starts, after = place(starts, time);
    const k = starts[after] === time ? after : after - 1;
    return this.series.run_states[Math.max(k, 0)];
  }
  tell(share) {
    const { times, values, sure, start } = this.series;
    const time = this.from + share * (this.to - this.from);
    let k = place(times, time);
    if (k > 0 && (k === times.length || time - times[k - 1] < times[k] - time)) k -= 1;
    document.getElementById("reading").textContent =
      `time ${short(start + times[k])} ${this.recording.unit}: ${this.recording.value} ${short(values[k])}, ` +
      `state ${names[this.stateAt(times[k])]}, probability ${sure[k].toFixed(3)}`;
  }
  draw() {
    const { width: wide, height: high } = this.canvas.getBoundingClientRect();
    if (!wide) return;
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = wide * scale;
    this.canvas.height = high * scale;
    const pen = this.canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, wide, high);
    const { times, values, run_starts: starts, run_states: states, start } = this.series;
    const x = (time) => (time - this.from) / (this.to - this.from) * wide;
    const first = Math.max(place(times, this.from) - 1, 0), last = Math.min(place(times, this.to) + 1, times.length);
    let low = Infinity, top = -Infinity;
    for (let k = first; k < last; k += 1) {
      if (values[k] < low) low = values[k];
      if (values[k] > top) top = values[k];
    }
    const room = (top - low || 1) * 0.05, foot = high - 22, band = 14;
    const y = (value) => (foot - band) - (value - low + room) / (top - low + 2 * room || 1) * (foot - band - 6);
    for (let k = Math.max(place(starts, this.from) - 1, 0); k < starts.length && starts[k] <= this.to; k += 1) {
      const left = x(Math.max(starts[k], this.from)), right = k + 1 < starts.length ? x(Math.min(starts[k + 1], this.to)) : wide;
      pen.fillStyle = colours[states[k]];
      pen.globalAlpha = 0.13;
      pen.fillRect(left, 0, Math.max(right - left, 0.5), foot - band);
      pen.globalAlpha = 1;
      pen.fillRect(left, foot - band, Math.max(right - left, 0.5), band);
    }
    pen.strokeStyle = "#444";
    pen.lineWidth = 1;
    pen.beginPath();
    let open = false;
    for (let k = first; k < last; k += 1) {
      if (!Number.isFinite(values[k])) { open = false; continue; }
      if (open) pen.lineTo(x(times[k]), y(values[k])); else pen.moveTo(x(times[k]), y(values[k]));
      open = true;
    }
    pen.stroke();
    if (last - first < wide / 6) {
      pen.fillStyle = "#000";
      for (let k = first; k < last; k += 1) {
        if (Number.isFinite(values[k])) { pen.beginPath(); pen.arc(x(times[k]), y(values[k]), 2.5, 0, 7); pen.fill(); }
      }
    }
    pen.fillStyle = "#333";
    pen.font = "12px system-ui, sans-serif";
    for (let k = 0; k <= 4; k += 1) {
      pen.textAlign = ["left", "center", "center", "center", "right"][k];
      pen.fillText(short(start + this.from + k / 4 * (this.to - this.from)), k / 4 * wide, high - 6);
    }
    pen.textAlign = "left";
    pen.fillText(`${short(top)}  ${this.recording.value}`, 4, 14);
    pen.fillText(short(low), 4, foot - band - 4);
  }
}

const canvas = document.getElementById("trace");
const viewer = recording && canvas ? new Viewer(canvas, recording) : null;
if (viewer) {
  document.getElementById("series").addEventListener("change", (event) => viewer.show(Number(event.target.value)));
  const acts = { "zoom-in": () => viewer.zoom(0.5, 0.5), "zoom-out": () => viewer.zoom(2, 0.5), left: () => viewer.move(-0.5),
    right: () => viewer.move(0.5), all: () => viewer.all() };
  for (const [name, act] of Object.entries(acts)) document.getElementById(name).addEventListener("click", act);
}
