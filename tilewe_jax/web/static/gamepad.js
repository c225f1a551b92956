// Gamepads: buttons and sticks give the same commands as keys.

const BUTTONS = { 0: "place", 1: "flip", 2: "previous", 3: "next", 4: "left", 5: "right", 12: "up", 13: "down", 14: "west", 15: "east" };
const REPEATED = new Set(["up", "down", "west", "east"]);
const FIRST_REPEAT = 300; // milliseconds
const REPEAT = 90;

/**
 * Call `command(name, pad)` for each press on a gamepad, polling while one is connected; `pad` is its number among several of
 * them, otherwise undefined. Returns a function that stops it.
 */
export function watchGamepads(command) {
  let frame;
  const due = new Map();

  function poll() {
    const pads = navigator.getGamepads().filter(Boolean);
    const held = new Map(); // [name, number of the gamepad] by a key
    pads.forEach((pad, number) => {
      const hold = (name) => held.set(`${name} ${number}`, [name, pads.length > 1 ? number : undefined]);
      pad.buttons.forEach((button, index) => button.pressed && BUTTONS[index] && hold(BUTTONS[index]));
      const [x = 0, y = 0] = pad.axes;
      if (x < -0.6) hold("west");
      if (x > 0.6) hold("east");
      if (y < -0.6) hold("up");
      if (y > 0.6) hold("down");
    });
    const time = performance.now();
    for (const [key, [name, pad]] of held) {
      if (!due.has(key)) {
        due.set(key, time + FIRST_REPEAT);
        command(name, pad);
      } else if (REPEATED.has(name) && time >= due.get(key)) {
        due.set(key, time + REPEAT);
        command(name, pad);
      }
    }
    for (const key of due.keys()) if (!held.has(key)) due.delete(key);
    frame = pads.length ? requestAnimationFrame(poll) : undefined;
  }

  const start = () => (frame ??= requestAnimationFrame(poll));
  addEventListener("gamepadconnected", start);
  if (navigator.getGamepads?.().some(Boolean)) start();
  return () => {
    removeEventListener("gamepadconnected", start);
    cancelAnimationFrame(frame);
  };
}
