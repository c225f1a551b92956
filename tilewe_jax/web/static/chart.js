// Line charts as SVG.

import { EMPTY, numeral, s } from "./dom.js";
import { language } from "./language.js";

const WIDTH = 400;

/**
 * Create a line chart.
 *
 * `lines`: [{name, color, points: [[x, y], ...], dashed}]; `range`: [low, high] of y, by default the range of the points;
 * `x`: [first, last]; `cursor`: a marked x; `from`: an x from which on the background is marked; `marks`: [{x, y, color, title}]; `zero`: a y with a line;
 * `format(y)`: text of a y; `onpick(x)`: called with the nearest integer x of a click or drag.
 */
export function lineChart({ lines, range, x, cursor, from, marks = [], zero, format = numeral, onpick, height = 120, label, area = false }) {
  const points = lines.flatMap((line) => line.points);
  const ys = points.map(([, y]) => y);
  let [low, high] = range ?? [Math.min(...ys, zero ?? Infinity), Math.max(...ys, zero ?? -Infinity)];
  if (!Number.isFinite(low)) [low, high] = [0, 1];
  if (low === high) [low, high] = [low - 1, high + 1];
  const [first, last] = x[0] === x[1] ? [x[0], x[0] + 1] : x;
  const left = 40, right = 8, top = 8, bottom = 18;
  const px = (value) => left + ((value - first) / (last - first)) * (WIDTH - left - right);
  const py = (value) => top + ((high - value) / (high - low)) * (height - top - bottom);
  const chart = s("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label });
  if (from !== undefined) chart.append(s("rect", { class: "certain", x: px(from), y: top, width: px(last) - px(from), height: height - top - bottom }));
  for (const y of ticks(low, high)) {
    chart.append(
      s("path", { class: y === zero ? "zero" : "grid", d: `M${left} ${py(y)}H${WIDTH - right}` }),
      s("text", { class: "tick y", x: left - 6, y: py(y) }, format(y)),
    );
  }
  for (const value of new Set([first, last])) {
    chart.append(s("text", { class: "tick x", x: px(value), y: height - 5, "text-anchor": value === first ? "start" : "end" }, compact(value)));
  }
  for (const { color, points: line, dashed } of lines) {
    for (const part of runs(line)) {
      const path = part.map(([a, b], index) => `${index ? "L" : "M"}${px(a).toFixed(1)} ${py(b).toFixed(1)}`).join("");
      const base = py(Math.max(low, Math.min(high, zero ?? low)));
      if (area && part.length > 1) {
        chart.append(s("path", { class: "area", d: `${path}L${px(part.at(-1)[0])} ${base}L${px(part[0][0])} ${base}Z`, fill: color }));
      }
      if (part.length === 1) chart.append(s("circle", { class: "dot", cx: px(part[0][0]), cy: py(part[0][1]), r: 2, fill: color }));
      else chart.append(s("path", { class: dashed ? "line dashed" : "line", d: path, stroke: color }));
    }
  }
  for (const { x: at, y, color, title } of marks) {
    chart.append(s("circle", { class: "mark", cx: px(at), cy: py(y), r: 4, fill: color }, s("title", {}, title)));
  }
  if (cursor !== undefined) chart.append(s("path", { class: "cursor", d: `M${px(cursor)} ${top}V${height - bottom}` }));
  if (onpick) {
    const pick = (event) => {
      const box = chart.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * WIDTH;
      const value = first + ((at - left) / (WIDTH - left - right)) * (last - first);
      onpick(Math.round(Math.max(first, Math.min(last, value))));
    };
    chart.classList.add("pickable");
    chart.addEventListener("pointerdown", pick);
    chart.addEventListener("pointermove", (event) => event.buttons && pick(event));
  }
  return chart;
}

/** Split a line at missing points. */
function runs(points) {
  const parts = [];
  let part = [];
  for (const point of points) {
    if (Number.isFinite(point[1])) part.push(point);
    else if (part.length) {
      parts.push(part);
      part = [];
    }
  }
  if (part.length) parts.push(part);
  return parts;
}

/** Three to five round numbers within a range. */
export function ticks(low, high) {
  const rough = (high - low) / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.75);
  const list = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step / 1e6; tick += step) list.push(Number(tick.toPrecision(10)));
  return list;
}

/** A number as a short text. */
export function compact(number) {
  if (!Number.isFinite(number)) return EMPTY;
  if (Number.isInteger(number) && Math.abs(number) < 10_000) return numeral(number);
  return new Intl.NumberFormat(language, { notation: "compact", maximumSignificantDigits: 3 }).format(number).replace(/-/g, "−");
}
