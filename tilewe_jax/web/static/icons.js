// Line icons, 24 x 24, drawn with the colour of the text.

import { s } from "./dom.js";

const PATHS = {
  rotateLeft: "M4 5v5h5M4.6 10A8 8 0 1 1 4 14",
  rotateRight: "M20 5v5h-5M19.4 10A8 8 0 1 0 20 14",
  flip: "M12 3v18M9 7 3 17h6zM15 7l6 10h-6z",
  previous: "M15 5l-7 7 7 7",
  next: "M9 5l7 7-7 7",
  first: "M18 5l-7 7 7 7M7 5v14",
  last: "M6 5l7 7-7 7M17 5v14",
  undo: "M9 7H5V3M5.5 7A8 8 0 1 1 4 13",
  redo: "M15 7h4V3M18.5 7A8 8 0 1 0 20 13",
  flag: "M6 21V4M6 5c4-3 8 3 13 0v9c-5 3-9-3-13 0",
  bulb: "M9 18h6M10 21h4M8 14a6 6 0 1 1 8 0c-1 1-1 2-1 2H9s0-1-1-2z",
  share: "M12 15V4M8 7l4-4 4 4M5 12v8h14v-8",
  download: "M12 4v11M8 11l4 4 4-4M5 19h14",
  copy: "M9 9h10v11H9zM15 9V4H5v11h4",
  check: "M5 13l5 5L19 7",
  close: "M6 6l12 12M18 6L6 18",
  help: "M9 9a3 3 0 1 1 4 3c-1 .5-1 1-1 2M12 17.5v.5M12 2.5a9.5 9.5 0 1 1 0 19 9.5 9.5 0 0 1 0-19",
  language: "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18M3 12h18M12 3c-6 5-6 13 0 18M12 3c6 5 6 13 0 18",
  sun: "M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M5 19l1.4-1.4M17.6 6.4L19 5",
  moon: "M20 14.5A8.5 8.5 0 1 1 9.5 4 7 7 0 0 0 20 14.5z",
  system: "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18M12 3v18M12 7h6.5M12 12h9M12 17h6.5",
  eye: "M2 12s4-7 10-7 10 7 10 7-4 7-10 7S2 12 2 12M12 9a3 3 0 1 1 0 6 3 3 0 0 1 0-6",
  chart: "M4 4v16h16M7 15l4-5 3 3 5-7",
  engine: "M7 7h10v10H7zM10 10h4v4h-4zM9 3v4M15 3v4M9 17v4M15 17v4M3 9h4M3 15h4M17 9h4M17 15h4",
  person: "M12 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8M4 21c0-5 4-7 8-7s8 2 8 7",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  open: "M12 5v14M5 12h14",
  upload: "M12 20V9M8 12l4-4 4 4M5 5h14",
  speech: "M4 5h16v11H11l-5 4v-4H4zM8 9h8M8 12h5",
  text: "M5 6h14M5 10h14M5 14h9M5 18h11",
};

export function icon(name) {
  return s("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, s("path", { d: PATHS[name] }));
}
