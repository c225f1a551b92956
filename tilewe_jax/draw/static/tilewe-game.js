// Boards of games as SVG, and the element <tilewe-game>, which shows a recorded game. One file without imports.
//
// Draws the views that tilewe_jax/draw/__init__.py describes, with the same shapes as the Python files in that folder: a test
// compares them, element by element. Colours are the CSS custom properties --tilewe-NAME, whose defaults are PALETTE. The theme
// is the system's, or the attribute data-theme="light" or "dark" of the element or of an element around it.
//
// <tilewe-game src="replay.json"> loads a recorded game; without src, the element contains it in a script element of type
// application/json. (This text is embedded in pages, so it must not contain the end tag of a script.)
//
// Attributes: src, move, data-theme, and the switches coordinates, numbers, last, heat ("on" or "off"). Properties: replay,
// move. Event: "tilewe-move", with detail {move}, whenever the position changes.

// ---- Colours

// Equal to PALETTE in theme.py.
export const PALETTE = {
  light: {
    paper: "#ffffff",
    panel: "#f7f6f3",
    ink: "#1d2024",
    muted: "#6a6e76",
    line: "#dcd9d2",
    accent: "#6a3fb5",
    board: "#f3f0ea",
    grid: "#e0dbd1",
    frame: "#c9c2b5",
    last: "#15161a",
    legal: "#6a3fb5",
    heat: "#8b3fc4",
    good: "#1c8a5a",
    bad: "#c22f3f",
    blue: "#2b62c4",
    "blue-edge": "#1b4389",
    "blue-mark": "#8fb0ec",
    "blue-ink": "#ffffff",
    yellow: "#f3c23c",
    "yellow-edge": "#a87a08",
    "yellow-mark": "#a97c0e",
    "yellow-ink": "#2b2103",
    red: "#c63d33",
    "red-edge": "#84211a",
    "red-mark": "#f2aca5",
    "red-ink": "#ffffff",
    green: "#3bb892",
    "green-edge": "#1c7459",
    "green-mark": "#116149",
    "green-ink": "#03251b",
    violet: "#8e5bc0",
    grey: "#7b8089",
    ground: "#dfe6d6",
    "ground-line": "#c5cfb8",
    storey1: "#d8cfbc",
    storey2: "#ebe4d5",
    storey3: "#fdfbf6",
    "storey-edge": "#9d917a",
    dome: "#465a84",
    "dome-light": "#8698bd",
    tile: "#fcf8ee",
    "tile-double": "#f8ebc4",
    "tile-triple": "#f1cf6e",
    "tile-edge": "#9b8f74",
    "tile-ink": "#23262b",
    "tile-mark": "#8a4bb8",
    "tile-back": "#cfc6b2",
  },
  dark: {
    paper: "#16181c",
    panel: "#1e2126",
    ink: "#eceae5",
    muted: "#9a9ea7",
    line: "#363b43",
    accent: "#b794f4",
    board: "#262a30",
    grid: "#343941",
    frame: "#4a505a",
    last: "#ffffff",
    legal: "#b794f4",
    heat: "#b56be8",
    good: "#41c98c",
    bad: "#ff6b72",
    blue: "#4f86e8",
    "blue-edge": "#1d417f",
    "blue-mark": "#b9d1fb",
    "blue-ink": "#ffffff",
    yellow: "#f7d05f",
    "yellow-edge": "#8a6610",
    "yellow-mark": "#94700f",
    "yellow-ink": "#2b2103",
    red: "#d9563f",
    "red-edge": "#7c2415",
    "red-mark": "#fbc1b4",
    "red-ink": "#ffffff",
    green: "#5fd3b4",
    "green-edge": "#1e7460",
    "green-mark": "#15634f",
    "green-ink": "#03251b",
    violet: "#b48ae0",
    grey: "#9aa0aa",
    ground: "#263029",
    "ground-line": "#3a463d",
    storey1: "#6a665b",
    storey2: "#9b9585",
    storey3: "#d9d3c3",
    "storey-edge": "#1d211f",
    dome: "#3b4f7d",
    "dome-light": "#8ea5d6",
    tile: "#e9e3d3",
    "tile-double": "#e6d39c",
    "tile-triple": "#dfb64d",
    "tile-edge": "#15161a",
    "tile-ink": "#1c1e22",
    "tile-mark": "#7b3aab",
    "tile-back": "#5a5548",
  },
};

const COLORS = ["blue", "yellow", "red", "green"];
const SEATS = {
  polyomino: COLORS,
  santorini: ["blue", "red"],
  triominos: ["blue", "red", "yellow", "green", "violet", "grey"],
};
const c = (name) => `var(--tilewe-${name})`;

/** The colour of a seat (of a colour in polyomino games) in graphs and beside names, as the name of a custom property. */
export const seatColor = (kind, seat) => (SEATS[kind] ?? SEATS.triominos)[seat % 6] ?? "grey";

const variables = (theme) =>
  Object.entries(PALETTE[theme])
    .map(([name, value]) => `--tilewe-${name}:${value}`)
    .join(";");
const themes = new CSSStyleSheet();
themes.replaceSync(`:where(:root){${variables("light")}}
@media (prefers-color-scheme:dark){:where(:root){${variables("dark")}}}
:where([data-theme="light"]){${variables("light")}}
:where([data-theme="dark"]){${variables("dark")}}
.tilewe-board,.tilewe-shape{font-family:ui-sans-serif,system-ui,sans-serif;user-select:none}
:where(.tilewe-board,.tilewe-shape){display:block;width:100%;height:auto}
.tilewe-board text,.tilewe-shape text{pointer-events:none}`);
document.adoptedStyleSheets = [...document.adoptedStyleSheets, themes];

// ---- Shapes

/** Round to a tenth, half upwards, as in Python. */
const r = (value) => Math.floor(value * 10 + 0.5) / 10;

function el(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) element.setAttribute(name, typeof value === "number" ? r(value) : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function root(width, height, label, className = "tilewe-board") {
  const attributes = { class: className, viewBox: `0 0 ${r(width)} ${r(height)}`, role: "img", "aria-label": label };
  return el("svg", attributes);
}

const text = (x, y, size, fill, content, more = {}) =>
  el("text", { x, y: y + 0.35 * size, "font-size": size, "text-anchor": "middle", fill, ...more }, String(content));

/** The name of a column: a to z, then aa, ab, and so on. */
const column = (x) => "a".repeat(Math.floor(x / 26)) + String.fromCharCode(97 + (x % 26));

/** The closed path around cells [x, y], y downwards, moved inwards by `inset` and with round corners. */
function outline(cells, side, left, top, inset, radius) {
  const steps = new Map();
  const key = (x, y) => `${x},${y}`;
  const taken = new Set(cells.map(([x, y]) => key(x, y)));
  const add = (x, y, dx, dy) => steps.set(key(x, y), [...(steps.get(key(x, y)) ?? []), [dx, dy]]);
  const sorted = [...cells].sort((a, b) => a[1] - b[1] || a[0] - b[0]);
  for (const [x, y] of sorted) {
    if (!taken.has(key(x, y - 1))) add(x, y, 1, 0);
    if (!taken.has(key(x + 1, y))) add(x + 1, y, 0, 1);
    if (!taken.has(key(x, y + 1))) add(x + 1, y + 1, -1, 0);
    if (!taken.has(key(x - 1, y))) add(x, y + 1, 0, -1);
  }
  let path = "";
  for (const [x, y] of sorted) {
    if (!steps.get(key(x, y))?.some(([dx]) => dx === 1)) continue;
    // Clockwise from the top left corner of a cell. If two cells touch corner to corner, the path stays with the first.
    const corners = [];
    const take = (at, right) =>
      at.splice(
        Math.max(
          at.findIndex(([ex, ey]) => ex === right[0] && ey === right[1]),
          0,
        ),
        1,
      )[0];
    let [dx, dy] = take(steps.get(key(x, y)), [1, 0]);
    let [px, py] = [x + dx, y + dy];
    while (px !== x || py !== y) {
      const [ex, ey] = take(steps.get(key(px, py)), [-dy, dx]);
      if (ex !== dx) corners.push([px, py, dx, dy, ex, ey]);
      [dx, dy] = [ex, ey];
      px += dx;
      py += dy;
    }
    if (dx !== 1) corners.push([x, y, dx, dy, 1, 0]);
    path += corners
      .map(([qx, qy, ax, ay, bx, by], i) => {
        const cx = left + qx * side - inset * (ay + by);
        const cy = top + qy * side + inset * (ax + bx);
        const from = `${r(cx - radius * ax)} ${r(cy - radius * ay)}`;
        return `${i ? "L" : "M"}${from}Q${r(cx)} ${r(cy)} ${r(cx + radius * bx)} ${r(cy + radius * by)}`;
      })
      .join("");
    path += "Z";
  }
  return path;
}

const disc = (x, y, radius) =>
  `M${r(x - radius)} ${r(y)}a${r(radius)} ${r(radius)} 0 1 0 ${r(2 * radius)} 0a${r(radius)} ${r(radius)} 0 1 0 ${r(-2 * radius)} 0Z`;

/** The path of the mark that identifies a colour without its hue: disc, bar, diamond or cross. */
const MARKS = {
  blue: (x, y, s) => disc(x, y, 0.1 * s),
  red: (x, y, s) =>
    `M${r(x)} ${r(y - 0.14 * s)}L${r(x + 0.14 * s)} ${r(y)}L${r(x)} ${r(y + 0.14 * s)}L${r(x - 0.14 * s)} ${r(y)}Z`,
  yellow: (x, y, s) => `M${r(x - 0.17 * s)} ${r(y - 0.05 * s)}h${r(0.34 * s)}v${r(0.1 * s)}h${r(-0.34 * s)}Z`,
  green: (x, y, s) => {
    const [a, b] = [r(0.045 * s), r(0.1 * s)];
    return `M${r(x - a)} ${r(y - a - b)}h${r(2 * a)}v${b}h${b}v${r(2 * a)}h${-b}v${b}h${r(-2 * a)}v${-b}h${-b}v${r(-2 * a)}h${b}Z`;
  },
};

/** A piece: cells [x, y] with y downwards, and numbers by "x,y" in the same coordinates. */
function piece(cells, color, side, left, top, numbers = {}) {
  const center = ([x, y]) => [left + (x + 0.5) * side, top + (y + 0.48) * side];
  const plain = cells.filter(([x, y]) => numbers[`${x},${y}`] === undefined);
  const numbered = cells.filter(([x, y]) => numbers[`${x},${y}`] !== undefined);
  return el(
    "g",
    { class: `tilewe-piece tilewe-${color}` },
    el("path", { d: outline(cells, side, left, top, 0.03 * side, 0.2 * side), fill: c(`${color}-edge`) }),
    el("path", { d: outline(cells, side, left, top - 0.025 * side, 0.075 * side, 0.16 * side), fill: c(color) }),
    plain.length
      ? el("path", { d: plain.map((cell) => MARKS[color](...center(cell), side)).join(""), fill: c(`${color}-mark`) })
      : null,
    ...numbered.map((cell) =>
      text(...center(cell), 0.46 * side, c(`${color}-ink`), numbers[`${cell[0]},${cell[1]}`], { "font-weight": "600" }),
    ),
  );
}

/** The connected components of the cells with a mark in a string of marks, as lists of [x, y]. */
function components(marks, size, mark) {
  const left = new Set();
  for (let i = 0; i < marks.length; i++) if (marks[i] === mark) left.add(i);
  const parts = [];
  for (const first of [...left]) {
    if (!left.delete(first)) continue;
    const part = [first];
    for (let next = 0; next < part.length; next++) {
      const [x, y] = [part[next] % size, Math.floor(part[next] / size)];
      for (const [ex, ey] of [
        [x + 1, y],
        [x - 1, y],
        [x, y + 1],
        [x, y - 1],
      ]) {
        const index = ey * size + ex;
        if (ex >= 0 && ex < size && ey >= 0 && ey < size && left.delete(index)) part.push(index);
      }
    }
    parts.push(part.sort((a, b) => a - b).map((index) => [index % size, Math.floor(index / size)]));
  }
  return parts;
}

/** The frame of a square board: ground, lines and the names of columns and rows. */
function square(view, options, ground, line, label) {
  const size = view.size;
  const side = Math.floor(600 / size);
  const named = options.coordinates !== false;
  const [left, top, edge] = [named ? 28 : 8, 8, size * side];
  const svg = root(left + edge + 8, top + edge + (named ? 26 : 8), label);
  svg.append(
    el("rect", {
      class: "tilewe-ground",
      x: left - 3,
      y: top - 3,
      width: edge + 6,
      height: edge + 6,
      rx: 8,
      fill: c(ground),
      stroke: c("frame"),
      "stroke-width": 1.5,
    }),
  );
  let lines = "";
  for (let i = 1; i < size; i++) lines += `M${left + i * side} ${top}v${edge}M${left} ${top + i * side}h${edge}`;
  svg.append(el("path", { class: "tilewe-grid", d: lines, stroke: c(line), "stroke-width": 1, fill: "none" }));
  if (named) {
    for (let i = 0; i < size; i++) {
      svg.append(text(left + (i + 0.5) * side, top + edge + 14, 13, c("muted"), column(i), { class: "tilewe-coordinate" }));
      svg.append(text(12, top + (size - 1 - i + 0.5) * side, 13, c("muted"), i + 1, { class: "tilewe-coordinate" }));
    }
  }
  return { svg, size, side, left, top };
}

/** The marks of single cells of a square board during play: hover (light), selected (a ring), cursor (a frame). */
function pointers({ svg, size, side, left, top }, { hover, selected, cursor }) {
  const [unit, box] = [
    Math.min(side, 60),
    (cell, inset) => ({
      x: left + cell[0] * side + inset,
      y: top + (size - 1 - cell[1]) * side + inset,
      width: side - 2 * inset,
      height: side - 2 * inset,
      rx: 0.1 * side,
    }),
  ];
  if (hover) svg.append(el("rect", { class: "tilewe-hover", ...box(hover, 1), fill: c("legal"), "fill-opacity": "0.14" }));
  if (selected) {
    const [cx, cy] = [left + (selected[0] + 0.5) * side, top + (size - 1 - selected[1] + 0.5) * side];
    svg.append(
      el("circle", {
        class: "tilewe-selected",
        cx,
        cy,
        r: 0.25 * side,
        fill: "none",
        stroke: c("accent"),
        "stroke-width": 0.05 * side,
      }),
    );
  }
  if (cursor) {
    svg.append(
      el("rect", { class: "tilewe-cursor", ...box(cursor, 0), fill: "none", stroke: c("paper"), "stroke-width": 0.14 * unit }),
    );
    svg.append(
      el("rect", { class: "tilewe-cursor", ...box(cursor, 0), fill: "none", stroke: c("accent"), "stroke-width": 0.08 * unit }),
    );
  }
}

function heatCells(board, options) {
  const { svg, size, side, left, top } = board;
  for (const [x, y, value, color] of options.heat ?? []) {
    const fill = c(color === undefined ? "heat" : COLORS[color]);
    svg.append(
      el("rect", {
        class: "tilewe-heat",
        x: left + x * side + 0.5,
        y: top + (size - 1 - y) * side + 0.5,
        width: side - 1,
        height: side - 1,
        rx: 0.14 * side,
        fill,
        "fill-opacity": `${Math.floor(80 * value + 0.5) / 100}`,
      }),
    );
  }
}

const actionColor = (view, action) => view.colors?.[action.color]?.name ?? "blue";

function polyomino(view, options, label) {
  const board = square(view, options, "board", "grid", label);
  const { svg, size, side, left, top } = board;
  const down = ([x, y]) => [x, size - 1 - y];
  const numbers = {};
  for (const [cell, number] of Object.entries(options.numbers ?? {}))
    numbers[down(cell.split(",").map(Number)).join()] = number;
  for (const [x, y] of view.start_cells) {
    const [cx, cy] = [left + (x + 0.5) * side, top + (size - 1 - y + 0.5) * side];
    const color = view.colors[view.current_color].name;
    svg.append(
      el("circle", {
        class: "tilewe-start",
        cx,
        cy,
        r: 0.2 * side,
        fill: "none",
        stroke: c(color),
        "stroke-width": 0.09 * side,
      }),
    );
  }
  heatCells(board, options);
  view.colors.forEach(({ name }, index) => {
    for (const cells of components(view.cells, size, String(index)))
      svg.append(piece(cells.map(down), name, side, left, top, numbers));
  });
  if (options.last?.cells) {
    const unit = Math.min(side, 60); // no thicker on boards of few cells
    const d = outline(options.last.cells.map(down), side, left, top, 0.03 * side + 0.015 * unit, 0.18 * side);
    svg.append(
      el("path", {
        class: "tilewe-last",
        d,
        fill: "none",
        stroke: c("last"),
        "stroke-width": 0.11 * unit,
        "stroke-linejoin": "round",
      }),
    );
  }
  for (const [x, y] of options.legal ?? []) {
    svg.append(
      el("circle", {
        class: "tilewe-legal",
        cx: left + (x + 0.5) * side,
        cy: top + (size - 1 - y + 0.5) * side,
        r: 0.11 * side,
        fill: c("legal"),
        "fill-opacity": "0.6",
      }),
    );
  }
  if (options.ghost?.cells) {
    const { cells, color = actionColor(view, { color: view.current_color }), legal } = options.ghost;
    const name = COLORS[color] ?? color;
    const state = legal === false ? "bad" : "good";
    svg.append(
      el("path", {
        class: `tilewe-ghost tilewe-${state}`,
        d: outline(cells.map(down), side, left, top, 0.06 * side, 0.18 * side),
        fill: c(legal === false ? "bad" : name),
        "fill-opacity": legal === false ? "0.3" : "0.6",
        stroke: c(state),
        "stroke-width": 0.09 * side,
        "stroke-dasharray": legal === false ? `${r(0.2 * side)} ${r(0.14 * side)}` : undefined,
      }),
    );
  }
  pointers(board, options);
  return board;
}

function tower(height, x, y, s) {
  const group = el("g", { class: `tilewe-tower tilewe-height-${height}` });
  const storeys = Math.min(height, 3);
  for (let level = 1; level <= storeys; level++) {
    const inset = s * (0.055 + 0.06 * level);
    const box = { width: s - 2 * inset, height: s - 2 * inset, rx: 0.05 * s };
    group.append(
      el("rect", { x: x + inset, y: y + inset + 0.015 * s, ...box, fill: c("storey-edge"), "fill-opacity": "0.55" }),
    );
    group.append(
      el("rect", {
        x: x + inset,
        y: y + inset,
        ...box,
        fill: c(`storey${level}`),
        stroke: c("storey-edge"),
        "stroke-width": 0.012 * s,
      }),
    );
  }
  if (height === 4) {
    const [cx, cy] = [x + 0.5 * s, y + 0.5 * s];
    group.append(el("circle", { cx, cy: cy + 0.015 * s, r: 0.235 * s, fill: c("storey-edge"), "fill-opacity": "0.55" }));
    group.append(el("circle", { cx, cy, r: 0.23 * s, fill: c("dome") }));
    group.append(
      el("path", {
        d: `M${r(cx - 0.13 * s)} ${r(cy - 0.02 * s)}Q${r(cx - 0.11 * s)} ${r(cy - 0.13 * s)} ${r(cx + 0.02 * s)} ${r(cy - 0.14 * s)}`,
        fill: "none",
        stroke: c("dome-light"),
        "stroke-width": 0.035 * s,
        "stroke-linecap": "round",
      }),
    );
  }
  if (height) group.append(text(x + 0.065 * s, y + 0.07 * s, 0.1 * s, c("muted"), height, { class: "tilewe-level" }));
  return group;
}

function worker(index, x, y, s) {
  const color = SEATS.santorini[Math.floor(index / 2)];
  return el(
    "g",
    { class: `tilewe-worker tilewe-${color}` },
    el("circle", { cx: x, cy: y + 0.02 * s, r: 0.185 * s, fill: c(`${color}-edge`) }),
    el("circle", { cx: x, cy: y, r: 0.18 * s, fill: c(color), stroke: c(`${color}-edge`), "stroke-width": 0.016 * s }),
    el("circle", { cx: x, cy: y, r: 0.125 * s, fill: "none", stroke: c(`${color}-mark`), "stroke-width": 0.016 * s }),
    el("path", { d: MARKS[color](x, y, 0.5 * s), fill: c(`${color}-ink`) }),
  );
}

function santorini(view, options, label) {
  const board = square(view, options, "ground", "ground-line", label);
  const { svg, size, side, left, top } = board;
  const corner = ([x, y]) => [left + x * side, top + (size - 1 - y) * side];
  const center = (cell) => corner(cell).map((at) => at + side / 2);
  const { last, ghost } = options;
  // Above a wider line in the colour of the paper, because storeys are light and dark.
  const lines = [
    ["paper", 0.064],
    ["last", 0.03],
  ].map(([color, width]) => ({ fill: "none", stroke: c(color), "stroke-width": width * side }));
  heatCells(board, options);
  [...view.heights].forEach((height, i) => {
    if (height !== "0") svg.append(tower(Number(height), ...corner([i % size, Math.floor(i / size)]), side));
  });
  for (const cell of options.legal ?? []) {
    const [x, y] = corner(cell);
    svg.append(
      el("rect", {
        class: "tilewe-legal",
        x: x + 0.04 * side,
        y: y + 0.04 * side,
        width: 0.92 * side,
        height: 0.92 * side,
        rx: 0.08 * side,
        fill: c("legal"),
        "fill-opacity": "0.18",
        stroke: c("legal"),
        "stroke-width": 0.02 * side,
      }),
    );
  }
  if (last?.build) {
    const [x, y] = corner(last.build);
    svg.append(
      el("rect", {
        class: "tilewe-last",
        x: x + 0.012 * side,
        y: y + 0.012 * side,
        width: 0.976 * side,
        height: 0.976 * side,
        rx: 0.06 * side,
        ...lines[1],
      }),
    );
  }
  if (last?.from) {
    const [[ax, ay], [bx, by]] = [center(last.from), center(last.to)];
    const length = Math.hypot(bx - ax, by - ay);
    const [dx, dy] = [(bx - ax) / length, (by - ay) / length];
    const d = `M${r(ax + 0.1 * side * dx)} ${r(ay + 0.1 * side * dy)}L${r(bx - 0.24 * side * dx)} ${r(by - 0.24 * side * dy)}`;
    for (const line of lines) {
      svg.append(el("path", { class: "tilewe-last", d, ...line, "stroke-linecap": "round" }));
      svg.append(el("circle", { class: "tilewe-last", cx: ax, cy: ay, r: 0.07 * side, ...line }));
    }
  }
  view.workers.forEach((cell, index) => {
    if (cell) svg.append(worker(index, ...center(cell), side));
  });
  if (last?.to) {
    const [cx, cy] = center(last.to);
    for (const line of lines) svg.append(el("circle", { class: "tilewe-last", cx, cy, r: 0.215 * side, ...line }));
  }
  for (const [cell, number] of Object.entries(options.numbers ?? {})) {
    const [x, y] = corner(cell.split(",").map(Number));
    svg.append(text(x + 0.925 * side, y + 0.935 * side, 0.1 * side, c("ink"), number, { class: "tilewe-number" }));
  }
  for (const cell of ghost?.cells ?? []) {
    const [x, y] = corner(cell);
    const state = ghost.legal === false ? "bad" : "good";
    svg.append(
      el("rect", {
        class: `tilewe-ghost tilewe-${state}`,
        x: x + 0.05 * side,
        y: y + 0.05 * side,
        width: 0.9 * side,
        height: 0.9 * side,
        rx: 0.08 * side,
        fill: c(state),
        "fill-opacity": "0.22",
        stroke: c(state),
        "stroke-width": 0.03 * side,
        "stroke-dasharray": ghost.legal === false ? `${r(0.1 * side)} ${r(0.07 * side)}` : undefined,
      }),
    );
  }
  pointers(board, options);
  return board;
}

/** A triangle with round corners, moved inwards by `inset`. */
function triangle(points, inset, radius) {
  const [cx, cy] = [(points[0][0] + points[1][0] + points[2][0]) / 3, (points[0][1] + points[1][1] + points[2][1]) / 3];
  const side = Math.hypot(points[1][0] - points[0][0], points[1][1] - points[0][1]);
  const scale = 1 - (inset * 2 * Math.sqrt(3)) / side;
  const moved = points.map(([x, y]) => [cx + scale * (x - cx), cy + scale * (y - cy)]);
  const length = side * scale;
  return (
    moved
      .map(([x, y], i) => {
        const [before, after] = [moved[(i + 2) % 3], moved[(i + 1) % 3]];
        const at = ([px, py]) => `${r(x + (radius * (px - x)) / length)} ${r(y + (radius * (py - y)) / length)}`;
        return `${i ? "L" : "M"}${at(before)}Q${r(x)} ${r(y)} ${at(after)}`;
      })
      .join("") + "Z"
  );
}

const KINDS = ["", "tile-triple", "tile-double", "tile"];

/** A tile of Triominos: its corners in pixels, and the numbers there; `null` for a tile that lies face down. */
function tile(points, numbers, side, number = null, cell = null) {
  const [cx, cy] = [(points[0][0] + points[1][0] + points[2][0]) / 3, (points[0][1] + points[1][1] + points[2][1]) / 3];
  const kind = numbers ? KINDS[new Set(numbers).size] : "tile-back";
  return el(
    "g",
    { class: `tilewe-tile tilewe-${kind}`, "data-cell": cell ? cell.join() : undefined },
    el("path", { d: triangle(points, 0.012 * side, 0.12 * side), fill: c("tile-edge") }),
    el("path", {
      d: triangle(
        points.map(([x, y]) => [x, y - 0.008 * side]),
        0.032 * side,
        0.1 * side,
      ),
      fill: c(kind),
    }),
    ...(numbers ?? []).map((digit, i) => {
      const [x, y] = [points[i][0] + 0.49 * (cx - points[i][0]), points[i][1] + 0.49 * (cy - points[i][1])];
      return text(x, y, 0.18 * side, c("tile-ink"), digit, { "font-weight": "600" });
    }),
    number === null ? null : text(cx, cy, 0.12 * side, c("tile-mark"), number, { class: "tilewe-number" }),
  );
}

/** The bounds [left, top, right, bottom] of the plane that a view of Triominos fills. */
export function boundsOf(view, withFrontier = false) {
  const shown = [...view.tiles, ...(withFrontier || !view.tiles.length ? view.frontier : [])];
  const points = shown.flatMap(({ points }) => points);
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  return points.length ? [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)] : [0, 0, 1, 1];
}

const SIDE = 72;

function triominos(view, options, label) {
  const shown = options.frontier || options.legal || options.ghost;
  const [x0, y0, x1, y1] = options.bounds ?? boundsOf(view, Boolean(shown));
  const margin = 20;
  const [width, height] = [Math.max((x1 - x0) * SIDE, 280), Math.max((y1 - y0) * SIDE, 160)];
  const [left, top] = [
    margin + (width - (x1 - x0) * SIDE) / 2 - x0 * SIDE,
    margin + (height - (y1 - y0) * SIDE) / 2 - y0 * SIDE,
  ];
  const svg = root(width + 2 * margin, height + 2 * margin, label);
  const place = (points) => points.map(([x, y]) => [left + x * SIDE, top + y * SIDE]);
  svg.append(
    el("rect", {
      class: "tilewe-ground",
      x: 3,
      y: 3,
      width: width + 2 * margin - 6,
      height: height + 2 * margin - 6,
      rx: 10,
      fill: c("board"),
      stroke: c("frame"),
      "stroke-width": 1.5,
    }),
  );
  const legal = options.legal && new Set(options.legal.map((cell) => cell.join()));
  const heat = new Map((options.heat ?? []).map(([x, y, value]) => [`${x},${y}`, value]));
  for (const { cell, points } of view.frontier) {
    const name = cell.join();
    const isLegal = legal?.has(name);
    if (heat.has(name))
      svg.append(
        el("path", {
          class: "tilewe-heat",
          d: triangle(place(points), 0.03 * SIDE, 0.1 * SIDE),
          fill: c("heat"),
          "fill-opacity": `${Math.floor(80 * heat.get(name) + 0.5) / 100}`,
        }),
      );
    if (!isLegal && !options.frontier) continue;
    svg.append(
      el("path", {
        class: isLegal ? "tilewe-legal" : "tilewe-frontier",
        "data-cell": name,
        d: triangle(place(points), 0.05 * SIDE, 0.1 * SIDE),
        fill: c("legal"),
        "fill-opacity": isLegal ? "0.18" : "0",
        stroke: isLegal ? c("legal") : c("frame"),
        "stroke-width": isLegal ? 2 : 1.2,
        "stroke-dasharray": isLegal ? undefined : "4 4",
      }),
    );
  }
  for (const { cell, points, numbers } of view.tiles)
    svg.append(tile(place(points), numbers, SIDE, options.numbers?.[cell.join()] ?? null, cell));
  if (options.last?.points) {
    svg.append(
      el("path", {
        class: "tilewe-last",
        d: triangle(place(options.last.points), 0.02 * SIDE, 0.12 * SIDE),
        fill: "none",
        stroke: c("last"),
        "stroke-width": 0.055 * SIDE,
        "stroke-linejoin": "round",
      }),
    );
  }
  if (options.ghost?.points) {
    const state = options.ghost.legal === false ? "bad" : "good";
    const points = place(options.ghost.points);
    const group = tile(points, options.ghost.numbers ?? null, SIDE);
    group.setAttribute("class", `tilewe-ghost tilewe-${state}`);
    group.setAttribute("opacity", options.ghost.legal === false ? "0.45" : "0.8");
    svg.append(group);
    svg.append(
      el("path", {
        class: `tilewe-ghost tilewe-${state}`,
        d: triangle(points, 0.03 * SIDE, 0.1 * SIDE),
        fill: "none",
        stroke: c(state),
        "stroke-width": 0.05 * SIDE,
        "stroke-dasharray": options.ghost.legal === false ? "9 6" : undefined,
      }),
    );
  }
  for (const name of ["hover", "cursor"]) {
    const cell = options[name]?.join();
    const shape = cell && [...view.frontier, ...view.tiles].find((other) => other.cell.join() === cell);
    if (!shape) continue;
    const stroke =
      name === "cursor"
        ? { stroke: c("accent"), "stroke-width": 0.06 * SIDE, fill: "none" }
        : { fill: c("legal"), "fill-opacity": "0.14" };
    svg.append(
      el("path", { class: `tilewe-${name}`, "data-cell": cell, d: triangle(place(shape.points), 0, 0.12 * SIDE), ...stroke }),
    );
  }
  return { svg, left, top };
}

function textBoard(view, label) {
  const lines = view.text.split("\n");
  const svg = root(9 * Math.max(...lines.map((line) => line.length)) + 24, 18 * lines.length + 24, label);
  lines.forEach((line, i) => {
    svg.append(
      el(
        "text",
        {
          x: 12,
          y: 18 * i + 26,
          "font-size": 15,
          "font-family": "ui-monospace,monospace",
          "xml:space": "preserve",
          fill: c("ink"),
        },
        line,
      ),
    );
  });
  return { svg };
}

/**
 * The board of a view as an SVG element.
 *
 * Options: coordinates (true), numbers {"x,y": n}, last (the view of the last action), legal [[x, y]] (marked cells), heat
 * [[x, y, value from 0 to 1, optional index of a colour]], ghost {cells | points, color, legal, numbers}; for Triominos also
 * frontier (show free cells) and bounds [left, top, right, bottom]; hover, selected and cursor, a cell each; label, for screen
 * readers. Tiles and free cells of Triominos have the attribute data-cell="x,y"; see also cellAt.
 */
export function boardSvg(view, options = {}) {
  const label = options.label ?? summary(view);
  const draw = { polyomino, santorini, triominos }[view.kind];
  const board = draw ? draw(view, options, label) : textBoard(view, label);
  boards.set(board.svg, { kind: view.kind, ...board });
  return board.svg;
}

const boards = new WeakMap();

/** The cell of a board under a point of the window; `null` outside the board. In Triominos, any cell of the plane. */
export function cellAt(svg, clientX, clientY) {
  const board = boards.get(svg);
  const matrix = svg.getScreenCTM();
  if (!board || !matrix) return null;
  const point = new DOMPoint(clientX, clientY).matrixTransform(matrix.inverse());
  if (board.kind === "triominos") {
    const [u, v] = [(2 * (point.x - board.left)) / SIDE, (point.y - board.top) / SIDE / (Math.sqrt(3) / 2)];
    const row = Math.floor(v);
    for (let x = Math.floor(u) - 2; x <= Math.floor(u); x++) {
      const reach = (x + row) % 2 === 0 ? v - row : 1 - (v - row);
      if (Math.abs(u - x - 1) <= reach) return [x, row];
    }
    return null;
  }
  if (board.size === undefined) return null;
  const [x, y] = [
    Math.floor((point.x - board.left) / board.side),
    board.size - 1 - Math.floor((point.y - board.top) / board.side),
  ];
  return x >= 0 && x < board.size && y >= 0 && y < board.size ? [x, y] : null;
}

/** A piece for a tray: cells [x, y] with y upwards, and the index or the name of a colour. 20 units per cell, sized by CSS. */
export function pieceSvg(cells, color, options = {}) {
  const [xs, ys] = [cells.map(([x]) => x), cells.map(([, y]) => y)];
  const [width, height] = [Math.max(...xs) - Math.min(...xs) + 1, Math.max(...ys) - Math.min(...ys) + 1];
  const side = 20;
  const svg = root(width * side, height * side, options.label ?? t`piece`, "tilewe-shape");
  const moved = cells.map(([x, y]) => [x - Math.min(...xs), Math.max(...ys) - y]);
  svg.append(piece(moved, COLORS[color] ?? color, side, 0, 0));
  return svg;
}

/**
 * A tile for a tray, as "125" or [1, 2, 5], with these numbers clockwise; `null` for a tile that lies face down.
 *
 * Options: up (the apex is on top, the default), label.
 */
export function tileSvg(name, options = {}) {
  const numbers = name === null ? null : [...name].map(Number);
  const side = SIDE;
  const height = (side * Math.sqrt(3)) / 2;
  const base = options.up === false ? 0 : height;
  const svg = root(side, height, options.label ?? (numbers ? t`tile ${numbers.join("-")}` : t`hidden tile`), "tilewe-shape");
  // The numbers ascend clockwise; with the apex below, from left to right, then to the apex.
  const corners = numbers && options.up === false ? [numbers[0], numbers[2], numbers[1]] : numbers;
  svg.append(
    tile(
      [
        [0, base],
        [side / 2, height - base],
        [side, base],
      ],
      corners,
      side,
    ),
  );
  return svg;
}

// ---- Words

/** The text for a missing value. */
export const EMPTY = "–";

/** Format a number with a minus sign, not a hyphen; `EMPTY` for a missing value. */
export function numeral(value) {
  return value === null || value === undefined || Number.isNaN(value) ? EMPTY : String(value).replace(/-/g, "−").replace(".", decimal);
}

/** Format a number with its sign. */
export function signed(value) {
  return value > 0 ? `+${numeral(value)}` : numeral(value);
}

let decimal = ".";
let t = (parts, ...values) => String.raw({ raw: parts }, ...values);

/** Describe pictures in another language: `translate` is a tag of templates, which are English here. */
export function setLanguage(language, translate) {
  decimal = (0.5).toLocaleString(language)[1];
  t = translate;
}

const mark = (view, index) => view.colors[index].name[0].toUpperCase();
const seatName = (names, seat) => names?.[seat] || `Player ${seat + 1}`;

/** Describe a position in one sentence. */
function summary(view) {
  if (!["polyomino", "santorini", "triominos"].includes(view.kind)) return t`Position`;
  const scores = view.scores.map(numeral).join(t` to `);
  const state = view.terminal ? t`game over` : t`player ${view.current_player + 1} to move`;
  if (view.kind === "polyomino") return t`Board of ${view.size} by ${view.size} cells; points ${scores}; ${state}`;
  if (view.kind === "santorini") return t`Santorini, ${view.size} by ${view.size} cells; ${state}`;
  return t`Triominos, ${view.tiles.length} tiles placed, ${view.pile} in the pile; points ${scores}; ${state}`;
}

/** Describe a position as text, for screen readers and terminals. */
export function describe(view) {
  const lines = [];
  const rows = (size, cell, width) => {
    for (let y = size - 1; y >= 0; y--) {
      lines.push(`${String(y + 1).padStart(2)} ${Array.from({ length: size }, (_, x) => cell(x, y)).join(" ")}`);
    }
    lines.push(`   ${Array.from({ length: size }, (_, x) => column(x).slice(-1).padEnd(width)).join(" ")}`.trimEnd());
  };
  if (view.kind === "polyomino") {
    const at = (x, y) => view.cells[y * view.size + x];
    rows(view.size, (x, y) => (at(x, y) === "." ? "." : mark(view, Number(at(x, y)))), 1);
    for (const color of view.colors) {
      lines.push(
        t`${t([color.name])}: ${numeral(color.score)} points, ${color.void} void cells, pieces left: ${color.pieces.join(" ") || t`none`}`,
      );
    }
    lines.push(t`${view.empty} empty cells`);
  } else if (view.kind === "santorini") {
    const on = (x, y) => view.workers.findIndex((cell) => cell && cell[0] === x && cell[1] === y);
    const level = (x, y) => (view.heights[y * view.size + x] === "0" ? " " : view.heights[y * view.size + x]);
    rows(view.size, (x, y) => (on(x, y) < 0 ? "." : "ABXY"[on(x, y)]) + level(x, y), 2);
    lines.push(t`workers: A and B of player 1, X and Y of player 2; digits are heights, 4 is a dome`);
  } else if (view.kind === "triominos") {
    lines.push(...triangles(view.tiles));
    view.scores.forEach((score, seat) => {
      const tray = view.trays[seat];
      const held = typeof tray === "number" ? t`${tray} hidden tiles` : tray.join(" ") || t`no tiles`;
      lines.push(t`player ${seat + 1}: ${numeral(score)} points, ${held}`);
    });
    lines.push(t`pile: ${view.pile} tiles`);
  } else {
    lines.push(view.text);
  }
  lines.push(view.terminal ? t`game over` : t`player ${view.current_player + 1} to move`);
  return lines.join("\n");
}

function triangles(tiles) {
  if (!tiles.length) return [t`(no tile is placed)`];
  const at = ([x, y]) => [Math.round(4 * x), Math.round((4 * y) / Math.sqrt(3))];
  const canvas = new Map();
  for (const { points, numbers } of tiles) {
    const corners = points.map(at);
    const [[x, base], [, apex]] = corners;
    const line = (base + apex) / 2;
    const up = base > apex;
    for (const [dx, letter] of [
      [1, up ? "/" : "\\"],
      [2, "."],
      [3, up ? "\\" : "/"],
    ])
      canvas.set(`${x + dx},${line}`, letter);
    for (const dx of [1, 2, 3]) canvas.set(`${x + dx},${base}`, "-");
    corners.forEach(([px, py], i) => canvas.set(`${px},${py}`, String(numbers[i])));
  }
  const keys = [...canvas.keys()].map((key) => key.split(",").map(Number));
  const [xs, ys] = [keys.map(([x]) => x), keys.map(([, y]) => y)];
  const lines = [];
  for (let y = Math.min(...ys); y <= Math.max(...ys); y++) {
    let line = "";
    for (let x = Math.min(...xs); x <= Math.max(...xs); x++) line += canvas.get(`${x},${y}`) ?? canvas.get(`${x},${y}`) ?? " ";
    lines.push(line.trimEnd());
  }
  return lines;
}

// ---- Replays

/** Number the pieces, tiles or buildings of the first moves by the latest move there; keys are "x,y". */
export function numbersOf(replay, move) {
  let numbers = {};
  replay.moves.slice(0, move).forEach((action, index) => {
    if (action.kind === "turn" && action.build) numbers[action.build.join()] = index + 1;
    if (action.kind !== "place") return;
    if (action.points) {
      if (!replay.frames[index].tiles.length) numbers = {};
      numbers[action.cell.join()] = index + 1;
    } else if (action.cells) {
      // The cell nearest to the middle.
      const n = action.cells.length;
      const [sx, sy] = [0, 1].map((axis) => action.cells.reduce((sum, cell) => sum + cell[axis], 0));
      const distance = ([x, y]) => (n * x - sx) ** 2 + (n * y - sy) ** 2;
      const best = action.cells.reduce((a, b) => (distance(b) < distance(a) ? b : a));
      numbers[best.join()] = index + 1;
    }
  });
  return numbers;
}

const cellsOf = (action) => action.cells ?? (action.points ? [action.cell] : action.to ? [action.to] : []);

/** The fraction of the visits of a search in actions that cover a cell, relative to the highest, as [x, y, value]. */
export function heatOf(analysis) {
  const heat = new Map();
  for (const action of analysis?.candidates ?? []) {
    for (const cell of cellsOf(action))
      heat.set(cell.join(), (heat.get(cell.join()) ?? 0) + (action.visits ?? action.prior ?? 0));
  }
  const most = Math.max(...heat.values(), 1e-9);
  return [...heat].map(([cell, value]) => [...cell.split(",").map(Number), value / most]);
}

// The pieces in rotation north, rows from the top, equal to DRAWINGS in tilewe_jax/games/polyomino/pieces.py.
const DRAWINGS = {
  O1: "X",
  I2: "X / X",
  I3: "X / X / X",
  L3: "X. / XX",
  O4: "XX / XX",
  I4: "X / X / X / X",
  L4: "X. / X. / XX",
  Z4: "XX. / .XX",
  T4: "XXX / .X.",
  F5: ".XX / XX. / .X.",
  I5: "X / X / X / X / X",
  L5: "X. / X. / X. / XX",
  N5: ".X / XX / X. / X.",
  P5: "XX / XX / X.",
  T5: "XXX / .X. / .X.",
  U5: "X.X / XXX",
  V5: "..X / ..X / XXX",
  W5: "..X / .XX / XX.",
  X5: ".X. / XXX / .X.",
  Y5: ".X / XX / .X / .X",
  Z5: "XX. / .X. / .XX",
};

/** The cells [x, y] of each piece in rotation north, by name. */
export const PIECES = Object.fromEntries(
  Object.entries(DRAWINGS).map(([name, drawing]) => {
    const rows = drawing.split(" / ").reverse();
    return [name, rows.flatMap((row, y) => [...row].flatMap((letter, x) => (letter === "X" ? [[x, y]] : [])))];
  }),
);

/** Set the size of an SVG element in pixels, as a multiple of its units. */
function sized(svg, scale) {
  const { width, height } = svg.viewBox.baseVal;
  svg.setAttribute("width", r(scale * width));
  svg.setAttribute("height", r(scale * height));
  return svg;
}

/** The remaining pieces or tiles of each colour or seat, as an element. */
export function traysOf(view) {
  const trays = document.createElement("div");
  trays.className = "trays";
  if (view.kind === "polyomino") {
    for (const color of view.colors) {
      const tray = document.createElement("div");
      tray.className = "tray";
      tray.setAttribute("role", "img");
      tray.setAttribute("aria-label", `${color.name} has left: ${color.pieces.join(", ") || "nothing"}`);
      for (const name of color.pieces) tray.append(sized(pieceSvg(PIECES[name], color.name, { label: name }), 0.45));
      trays.append(tray);
    }
  } else if (view.kind === "triominos") {
    view.trays.forEach((held, seat) => {
      const tray = document.createElement("div");
      tray.className = "tray";
      tray.setAttribute("role", "img");
      const isHidden = typeof held === "number";
      tray.setAttribute(
        "aria-label",
        `player ${seat + 1} has ${isHidden ? `${held} hidden tiles` : held.join(", ") || "no tiles"}`,
      );
      for (const name of isHidden ? Array(held).fill(null) : held) tray.append(sized(tileSvg(name), isHidden ? 0.3 : 0.62));
      trays.append(tray);
    });
  }
  return trays;
}

// ---- The element

const ICONS = {
  first: "M5 4v16M20 4L9 12l11 8z",
  back: "M17 4L6 12l11 8z",
  play: "M7 4l12 8-12 8z",
  pause: "M7 4h3.5v16H7zM13.5 4H17v16h-3.5z",
  next: "M7 4l11 8-11 8z",
  end: "M19 4v16M4 4l11 8L4 20z",
};

const STYLE = `
:host{display:block;container-type:inline-size;color:var(--tilewe-ink);font:15px/1.45 ui-sans-serif,system-ui,sans-serif}
*{box-sizing:border-box}
[hidden]{display:none!important}
.game{background:var(--tilewe-paper);display:grid;gap:14px;grid-template-columns:minmax(0,1fr);max-width:1080px;margin:0 auto;padding:10px;border-radius:12px}
.stage,.side,.players{grid-template-columns:minmax(0,1fr)}
.stage{display:grid;gap:10px;align-content:start;min-width:0}
.board{outline:none;border-radius:12px;max-width:min(100%,78vh);width:100%;margin:0 auto}
.board:focus-visible{box-shadow:0 0 0 3px var(--tilewe-accent)}
.tilewe-board,.tilewe-shape{display:block;font-family:inherit}
.tilewe-board{width:100%;height:auto}
.tilewe-shape{flex:none}
.players{display:grid;gap:4px;margin:0;padding:0;list-style:none}
.player{display:grid;grid-template-columns:auto minmax(0,1fr) auto;gap:9px;align-items:center;padding:6px 10px;border-radius:8px;border:1px solid transparent;background:var(--tilewe-panel)}
.player.turns{border-color:var(--tilewe-accent)}
.player b{font-weight:600;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.player .points{font-variant-numeric:tabular-nums;font-weight:600}
.player .turn{color:var(--tilewe-muted);font-weight:400;font-size:13px}
.chip{width:13px;height:13px;border-radius:4px;display:inline-block;vertical-align:-1px}
.tray{display:flex;flex-wrap:wrap;gap:5px 6px;align-items:center;grid-column:1/-1;min-height:10px}
.controls{display:flex;gap:4px;align-items:center;justify-content:center}
button{font:inherit;color:inherit;background:none;border:1px solid transparent;border-radius:8px;cursor:pointer;padding:0}
button:hover:not(:disabled){background:var(--tilewe-panel)}
button:focus-visible,summary:focus-visible,input:focus-visible{outline:2px solid var(--tilewe-accent);outline-offset:1px}
button:disabled{opacity:.35;cursor:default}
.controls button{width:44px;height:40px;display:grid;place-items:center}
.controls svg{width:22px;height:22px;fill:currentColor;stroke:currentColor;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.controls .play{background:var(--tilewe-ink);color:var(--tilewe-paper);width:52px}
.controls .play:hover{background:var(--tilewe-ink);opacity:.85}
.slider{display:grid;grid-template-columns:1fr auto;gap:12px;align-items:center;font-variant-numeric:tabular-nums;color:var(--tilewe-muted);font-size:13px}
input[type=range]{width:100%;accent-color:var(--tilewe-accent);height:26px;margin:0}
.caption{text-align:center;min-height:1.5em;overflow-wrap:anywhere}
.switches{display:flex;flex-wrap:wrap;gap:6px;justify-content:center}
.switches button{font-size:13px;padding:5px 12px;border-color:var(--tilewe-line);color:var(--tilewe-muted);min-height:32px}
.switches button[aria-pressed=true]{color:var(--tilewe-ink);border-color:var(--tilewe-accent);background:var(--tilewe-panel)}
.side{display:grid;gap:14px;align-content:start;min-width:0}
.graph{display:block;width:100%;height:116px;cursor:pointer;touch-action:none;border-radius:8px}
h3{font-size:13px;font-weight:600;color:var(--tilewe-muted);margin:0 0 5px}
.moves{margin:0;padding:0;list-style:none;max-height:300px;overflow-y:auto;display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,158px),1fr));gap:1px;font-variant-numeric:tabular-nums;scrollbar-width:thin}
.moves button{width:100%;text-align:left;padding:3px 7px;font-size:13.5px;display:flex;gap:7px;align-items:center;border-radius:6px;min-height:28px}
.moves i{font-style:normal;color:var(--tilewe-muted);min-width:2.1em;text-align:right}
.moves span.name{overflow-wrap:anywhere}
.moves [aria-current=true]{background:var(--tilewe-ink);color:var(--tilewe-paper)}
.moves [aria-current=true] i{color:inherit}
.candidates{width:100%;border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}
.candidates td,.candidates th{padding:3px 6px;text-align:right;border-bottom:1px solid var(--tilewe-line);font-weight:400}
.candidates td:first-child,.candidates th:first-child{text-align:left;overflow-wrap:anywhere}
.candidates th{color:var(--tilewe-muted)}
.candidates tbody tr:hover,.candidates tbody tr:focus{background:var(--tilewe-panel);outline:none}
details{color:var(--tilewe-muted);font-size:13px}
summary{cursor:pointer}
pre{font:12px/1.35 ui-monospace,monospace;overflow-x:auto;margin:6px 0 0;color:var(--tilewe-ink)}
.message{padding:2em 1em;text-align:center;color:var(--tilewe-muted)}
.quiet{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
@container (min-width:780px){
.game{grid-template-columns:minmax(0,1.55fr) minmax(260px,1fr);gap:24px;padding:16px}
.moves{max-height:340px}
}
@media (prefers-reduced-motion:no-preference){button,.player{transition:background-color .15s,border-color .15s}}
`;
const style = new CSSStyleSheet();
style.replaceSync(STYLE);

/** An HTML element with attributes (functions are listeners) and children. */
function html(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

const icon = (name) => el("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, el("path", { d: ICONS[name] }));

/** A small square of a colour, to stand beside a name. */
function chip(color) {
  const square = el("svg", { class: "chip", viewBox: "0 0 13 13", "aria-hidden": "true" });
  square.append(el("rect", { width: 13, height: 13, rx: 4, fill: c(color) }));
  if (MARKS[color]) square.append(el("path", { d: MARKS[color](6.5, 6.5, 24), fill: c(`${color}-mark`) }));
  return square;
}

const chipsOf = (view, seat) =>
  view.kind === "polyomino"
    ? view.colors.filter(({ player }) => player === seat).map(({ name }) => chip(name))
    : [chip(seatColor(view.kind, seat))];

const percent = (value) => `${Math.round(100 * value)} %`;
const SWITCHES = { coordinates: "Coordinates", numbers: "Move numbers", last: "Last move", heat: "Heat map" };
const PAUSE = 800; // milliseconds between moves

export class TileweGame extends HTMLElement {
  static observedAttributes = ["src", "move", ...Object.keys(SWITCHES)];

  #replay = null;
  #move = 0;
  #timer = 0;
  #parts = {};
  #shows = { coordinates: true, numbers: false, last: true, heat: false };

  constructor() {
    super();
    this.attachShadow({ mode: "open" }).adoptedStyleSheets = [style];
  }

  connectedCallback() {
    const own = Object.hasOwn(this, "replay") && this.replay; // set before this module was loaded
    if (own) {
      delete this.replay;
      this.replay = own;
    } else if (!this.#replay) this.#load();
  }

  disconnectedCallback() {
    this.pause();
  }

  attributeChangedCallback(name, before, value) {
    if (before === value) return;
    if (name === "src") {
      if (this.isConnected) this.#load();
    } else if (name === "move") {
      if (value !== null && Number(value) !== this.#move) this.move = Number(value);
    } else {
      this.#shows[name] = value === null ? name === "coordinates" || name === "last" : value !== "off";
      this.#refresh();
    }
  }

  /** The recorded game: frames (views, one more than moves), moves, names, and optionally analyses and a result. */
  get replay() {
    return this.#replay;
  }

  set replay(value) {
    this.pause();
    if (!Array.isArray(value?.frames) || !value.frames.length || value.moves?.length !== value.frames.length - 1) {
      this.#message("This file is not a recorded game: it must have frames, and a move for each frame except the first.");
      return;
    }
    this.#replay = value;
    const wished = this.hasAttribute("move") ? Number(this.getAttribute("move")) : 0;
    this.#move = Math.max(0, Math.min(Number.isFinite(wished) ? wished : 0, value.moves.length));
    this.#build();
  }

  /** The number of moves before the current position. */
  get move() {
    return this.#move;
  }

  set move(value) {
    if (!this.#replay) return;
    const move = Math.max(0, Math.min(Math.round(Number(value)) || 0, this.#replay.moves.length));
    if (move === this.#move) return;
    this.#move = move;
    this.#refresh();
    this.dispatchEvent(new CustomEvent("tilewe-move", { detail: { move }, bubbles: true }));
  }

  play() {
    if (!this.#replay || this.#timer) return;
    if (this.#move === this.#replay.moves.length) this.move = 0;
    this.#timer = setInterval(() => {
      this.move += 1;
      if (this.#move === this.#replay.moves.length) this.pause();
    }, PAUSE);
    this.#refresh();
  }

  pause() {
    if (!this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = 0;
    this.#refresh();
  }

  async #load() {
    const inside = this.querySelector('script[type="application/json"]');
    try {
      if (this.hasAttribute("src")) {
        this.#message("Loading the game …");
        const source = this.getAttribute("src");
        const answer = await fetch(source);
        if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
        const value = await answer.json();
        if (source === this.getAttribute("src")) this.replay = value;
      } else if (inside) this.replay = JSON.parse(inside.textContent);
      else if (document.readyState === "loading")
        document.addEventListener("DOMContentLoaded", () => this.#load(), { once: true });
    } catch (error) {
      this.#message(`The game could not be loaded: ${error.message}`);
    }
  }

  #message(words) {
    this.#replay = null;
    this.shadowRoot.replaceChildren(html("p", { class: "message", role: "status" }, words));
  }

  #build() {
    const { moves, frames, analyses } = this.#replay;
    const parts = (this.#parts = {});
    const button = (name, label, act) =>
      html("button", { type: "button", class: name, "aria-label": label, title: label, click: act }, icon(name));
    parts.board = html("div", {
      class: "board",
      tabindex: "0",
      role: "group",
      "aria-label": "Board; use the arrow keys to go through the moves",
    });
    parts.caption = html("div", { class: "caption", "aria-live": "polite" });
    parts.slider = html("input", {
      type: "range",
      min: "0",
      max: String(moves.length),
      "aria-label": "Move",
      input: (event) => (this.move = event.target.value),
    });
    parts.count = html("span", { "aria-hidden": "true" });
    parts.first = button("first", "Start", () => (this.move = 0));
    parts.back = button("back", "Previous move", () => (this.move -= 1));
    parts.play = button("play", "Play", () => (this.#timer ? this.pause() : this.play()));
    parts.next = button("next", "Next move", () => (this.move += 1));
    parts.end = button("end", "End", () => (this.move = moves.length));
    const analysed = analyses?.some((analysis) => analysis);
    const kind = frames[0].kind;
    const usable = {
      coordinates: kind === "polyomino" || kind === "santorini",
      numbers: kind !== "text",
      last: kind !== "text",
      heat: analysed && kind !== "text",
    };
    parts.switches = Object.entries(SWITCHES)
      .filter(([name]) => usable[name])
      .map(([name, label]) => html("button", { type: "button", "data-name": name, click: () => this.#toggle(name) }, label));
    parts.players = html("ul", { class: "players", "aria-label": "Players" });
    parts.candidates = html("section", { hidden: true });
    parts.moves = html("ol", { class: "moves" });
    parts.moveButtons = moves.map((action, index) => {
      const [chipOfMove] =
        action.color !== undefined && frames[0].colors
          ? [chip(frames[0].colors[action.color].name)]
          : chipsOf(frames[0], action.player);
      const words =
        action.gain === undefined ? action.name : `${action.name} ${signed(action.gain)}`;
      return html(
        "button",
        { type: "button", click: () => (this.move = index + 1) },
        html("i", {}, `${index + 1}.`),
        chipOfMove,
        html("span", { class: "name" }, words),
      );
    });
    parts.moves.append(...parts.moveButtons.map((item) => html("li", {}, item)));
    parts.text = html("pre", { tabindex: "0" });
    parts.details = html("details", { toggle: () => this.#refresh() }, html("summary", {}, "Board as text"), parts.text);
    const values = analysed && analyses.some((analysis) => analysis?.value);
    parts.graph = values ? this.#graph() : null;
    const side = html("div", { class: "side" }, parts.players);
    if (values) side.append(html("section", {}, html("h3", {}, "Expected outcome"), parts.graph.svg));
    side.append(
      parts.candidates,
      html("section", { hidden: !moves.length }, html("h3", {}, "Moves"), parts.moves),
      parts.details,
    );
    const controls = html(
      "div",
      { class: "controls", role: "group", "aria-label": "Replay" },
      parts.first,
      parts.back,
      parts.play,
      parts.next,
      parts.end,
    );
    const stage = html(
      "div",
      { class: "stage" },
      parts.board,
      parts.caption,
      html("div", { class: "slider", hidden: !moves.length }, parts.slider, parts.count),
      controls,
      html("div", { class: "switches", role: "group", "aria-label": "Show" }, ...parts.switches),
    );
    this.#parts.bounds = kind === "triominos" ? rounds(frames) : [];
    this.shadowRoot.replaceChildren(html("div", { class: "game", keydown: (event) => this.#key(event) }, stage, side));
    this.#refresh();
  }

  #toggle(name) {
    this.setAttribute(name, this.#shows[name] ? "off" : "on");
  }

  #key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const isSlider = event.target === this.#parts.slider;
    const isButton = event.target instanceof HTMLButtonElement;
    const act = {
      ArrowLeft: () => (this.move -= 1),
      ArrowRight: () => (this.move += 1),
      Home: () => (this.move = 0),
      End: () => (this.move = this.#replay.moves.length),
      PageUp: () => (this.move -= 10),
      PageDown: () => (this.move += 10),
      " ": isButton ? null : () => (this.#timer ? this.pause() : this.play()),
      c: () => this.#toggle("coordinates"),
      n: () => this.#toggle("numbers"),
      l: () => this.#toggle("last"),
    }[event.key];
    if (!act || (isSlider && event.key.length > 1)) return;
    event.preventDefault();
    act();
  }

  /** The options of the board, by the switches. */
  #options(ghost) {
    const { moves, analyses } = this.#replay;
    const shows = this.#shows;
    return {
      coordinates: shows.coordinates,
      last: shows.last && this.#move ? moves[this.#move - 1] : undefined,
      numbers: shows.numbers ? numbersOf(this.#replay, this.#move) : undefined,
      heat: shows.heat ? heatOf(analyses?.[this.#move]) : undefined,
      bounds: this.#parts.bounds[this.#move],
      ghost,
    };
  }

  #draw(ghost) {
    this.#parts.board.replaceChildren(boardSvg(this.#replay.frames[this.#move], this.#options(ghost)));
  }

  #refresh() {
    if (!this.#replay || !this.#parts.board) return;
    const { frames, moves, names, analyses, result } = this.#replay;
    const [view, parts, move] = [frames[this.#move], this.#parts, this.#move];
    this.#draw();
    parts.caption.textContent = caption(this.#replay, move);
    parts.slider.value = String(move);
    parts.slider.setAttribute("aria-valuetext", caption(this.#replay, move));
    parts.count.textContent = `${move} / ${moves.length}`;
    parts.first.disabled = parts.back.disabled = move === 0;
    parts.next.disabled = parts.end.disabled = move === moves.length;
    const action = this.#timer ? "pause" : "play";
    parts.play.replaceChildren(icon(action));
    parts.play.setAttribute("aria-label", this.#timer ? "Pause" : "Play");
    parts.play.title = this.#timer ? "Pause" : "Play";
    for (const item of parts.switches) item.setAttribute("aria-pressed", String(this.#shows[item.dataset.name]));
    const trays = [...traysOf(view).children];
    const best = view.terminal ? Math.max(...(result?.returns ?? view.scores)) : null;
    parts.players.replaceChildren(
      ...view.scores.map((score, seat) => {
        const isToMove = !view.terminal && view.current_player === seat;
        const own =
          view.kind === "polyomino"
            ? trays.filter((_, color) => view.colors[color].player === seat)
            : trays.slice(seat, seat + 1);
        const won = best !== null && (result?.returns ?? view.scores)[seat] === best;
        const shared = best !== null && (result?.returns ?? view.scores).filter((value) => value === best).length > 1;
        const state = isToMove ? "to move" : won ? (shared ? "tied" : "won") : "";
        return html(
          "li",
          { class: isToMove ? "player turns" : "player" },
          html("span", {}, ...chipsOf(view, seat)),
          html("b", { title: seatName(names, seat) }, seatName(names, seat)),
          html(
            "span",
            { class: "points" },
            html("span", { class: "turn" }, state ? `${state}  ` : ""),
            view.kind === "santorini" ? "" : numeral(score),
          ),
          ...own,
        );
      }),
    );
    parts.moveButtons.forEach((item, index) => item.setAttribute("aria-current", String(index + 1 === move)));
    const current = parts.moveButtons[move - 1];
    if (current) {
      // scrollIntoView would move the page, too.
      const [list, item] = [parts.moves.getBoundingClientRect(), current.getBoundingClientRect()];
      if (item.top < list.top) parts.moves.scrollTop -= list.top - item.top;
      if (item.bottom > list.bottom) parts.moves.scrollTop += item.bottom - list.bottom;
    } else parts.moves.scrollTop = 0;
    parts.graph?.show(move);
    this.#candidates(analyses?.[move]);
    if (parts.details.open) parts.text.textContent = describe(view);
  }

  #candidates(analysis) {
    const { candidates } = this.#parts;
    const rows = (analysis?.candidates ?? []).slice(0, 6);
    candidates.hidden = !rows.length;
    if (!rows.length) return;
    const seat = this.#replay.frames[this.#move].current_player;
    const head = html("tr", {}, ...["Candidate", "Visits", "Prior", "Value"].map((name) => html("th", { scope: "col" }, name)));
    const body = rows.map((row) => {
      const show = () =>
        this.#draw({
          cells: row.cells ?? (row.to ? [row.to, ...(row.build ? [row.build] : [])] : undefined),
          points: row.points,
          numbers: row.numbers,
          color: row.color,
          legal: true,
        });
      const hide = () => this.#draw();
      const value = Array.isArray(row.value) ? row.value[seat] : row.value;
      const cells = [
        row.name,
        numeral(row.visits),
        row.prior === undefined || row.prior === null ? EMPTY : percent(row.prior),
        value === undefined || value === null ? EMPTY : percent(value),
      ];
      const title = row.variation?.length ? row.variation.join(" ") : null;
      return html(
        "tr",
        { tabindex: "0", title, mouseenter: show, mouseleave: hide, focus: show, blur: hide },
        ...cells.map((cell) => html("td", {}, String(cell))),
      );
    });
    candidates.replaceChildren(
      html("h3", {}, "Search"),
      html("table", { class: "candidates" }, html("thead", {}, head), html("tbody", {}, ...body)),
    );
  }

  /** The graph of expected outcomes over the game: stacked areas for two seats whose values sum to one, otherwise lines. */
  #graph() {
    const { frames, analyses } = this.#replay;
    const [width, height, last] = [320, 110, Math.max(frames.length - 1, 1)];
    const [kind, seats] = [frames[0].kind, frames[0].num_players];
    const x = (move) => (width * move) / last;
    const y = (value) => 3 + (height - 6) * (1 - Math.max(0, Math.min(1, value)));
    const svg = el("svg", {
      class: "graph",
      preserveAspectRatio: "none",
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": "Expected outcome by move",
    });
    svg.append(el("rect", { width, height, fill: c("board") }));
    const known = analyses.flatMap((analysis, move) => (analysis?.value ? [[move, analysis.value]] : []));
    const line = (seat) => known.map(([move, value], i) => `${i ? "L" : "M"}${r(x(move))} ${r(y(value[seat]))}`).join("");
    if (seats === 2 && known.length) {
      const [start, end] = [r(x(known[0][0])), r(x(known.at(-1)[0]))];
      const colors = kind === "polyomino" ? ["blue", "yellow"] : ["blue", "red"];
      svg.append(
        el("path", { d: `${line(0)}L${end} ${height}L${start} ${height}Z`, fill: c(colors[0]), "fill-opacity": "0.75" }),
      );
      svg.append(el("path", { d: `${line(0)}L${end} 0L${start} 0Z`, fill: c(colors[1]), "fill-opacity": "0.75" }));
      svg.append(
        el("path", { d: line(0), fill: "none", stroke: c("last"), "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" }),
      );
    } else {
      for (let seat = 0; seat < seats; seat++)
        svg.append(
          el("path", {
            d: line(seat),
            fill: "none",
            stroke: c(seatColor(kind, seat)),
            "stroke-width": 2,
            "vector-effect": "non-scaling-stroke",
          }),
        );
    }
    svg.append(
      el("path", { d: `M0 ${height / 2}H${width}`, stroke: c("muted"), "stroke-width": 0.7, "stroke-dasharray": "3 4" }),
    );
    const cursor = el("path", { stroke: c("last"), "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" });
    svg.append(cursor);
    const go = (event) => {
      const box = svg.getBoundingClientRect();
      this.move = Math.round(((event.clientX - box.left) / box.width) * last);
    };
    svg.addEventListener("pointerdown", (event) => {
      svg.setPointerCapture(event.pointerId);
      go(event);
    });
    svg.addEventListener("pointermove", (event) => event.buttons && go(event));
    return { svg, show: (move) => cursor.setAttribute("d", `M${r(x(move))} 0V${height}`) };
  }
}

/** Describe the last move in words. */
function caption(replay, move) {
  if (!move) return "Start";
  const action = replay.moves[move - 1];
  const gain =
    action.gain === undefined
      ? ""
      : `, ${numeral(action.gain)} points${action.reason ? ` (${action.reason})` : ""}`;
  return `${move}. ${seatName(replay.names, action.player)}: ${action.name}${gain}`;
}

/** Bounds of each frame of Triominos that are constant within a round. */
function rounds(frames) {
  const bounds = [];
  let start = 0;
  frames.forEach((view, index) => {
    if (index + 1 < frames.length && (!view.tiles.length || frames[index + 1].tiles.length)) return;
    const whole = boundsOf(view);
    for (; start <= index; start++) bounds.push(whole);
  });
  return bounds;
}

customElements.define("tilewe-game", TileweGame);
