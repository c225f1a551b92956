// Gamepads: buttons and sticks give the same commands as keys.

const BUTTONS = { 0: "place", 1: "flip", 2: "previous", 3: "next", 4: "left", 5: "right", 12: "up", 13: "down", 14: "west", 15: "east" };
const REPEATED = new Set(["up", "down", "west", "east"]);
const FIRST_REPEAT = 300; // milliseconds
const REPEAT = 90;

/** Call `command(name)` for each press on a gamepad, polling while one is connected. Returns a function that stops it. */
export function watchGamepads(command) {
  let frame;
  const due = new Map();

  function poll() {
    const held = new Set();
    for (const pad of navigator.getGamepads()) {
      if (!pad) continue;
      pad.buttons.forEach((button, index) => button.pressed && BUTTONS[index] && held.add(BUTTONS[index]));
      const [x = 0, y = 0] = pad.axes;
      if (x < -0.6) held.add("west");
      if (x > 0.6) held.add("east");
      if (y < -0.6) held.add("up");
      if (y > 0.6) held.add("down");
    }
    const time = performance.now();
    for (const name of held) {
      if (!due.has(name)) {
        due.set(name, time + FIRST_REPEAT);
        command(name);
      } else if (REPEATED.has(name) && time >= due.get(name)) {
        due.set(name, time + REPEAT);
        command(name);
      }
    }
    for (const name of due.keys()) if (!held.has(name)) due.delete(name);
    frame = navigator.getGamepads().some(Boolean) ? requestAnimationFrame(poll) : undefined;
  }

  const start = () => (frame ??= requestAnimationFrame(poll));
  addEventListener("gamepadconnected", start);
  if (navigator.getGamepads?.().some(Boolean)) start();
  return () => {
    removeEventListener("gamepadconnected", start);
    cancelAnimationFrame(frame);
  };
}
