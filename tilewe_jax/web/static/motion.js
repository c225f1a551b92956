// Movements that show what has changed. Nothing moves for users who prefer reduced motion.

const reduced = matchMedia("(prefers-reduced-motion: reduce)");

/** Whether anything may move. */
export const moving = () => !reduced.matches;

/** Scroll to an element. */
export const scrollTo = (element, block = "start") => element.scrollIntoView({ block, behavior: moving() ? "smooth" : "auto" });

const PULSE = 500; // milliseconds
const PULSES = 3;
const SLIDE = 280;

/**
 * Continue the movement of a move that arrived `since` milliseconds ago: its marks pulse, and its piece slides into place from
 * `from`, an offset in the units of the drawing. A board that is drawn again calls this again.
 */
export function arrive(since, marks, piece, from) {
  if (!moving() || since > PULSE * PULSES) return;
  for (const mark of marks) mark.animate({ opacity: [1, 0.1, 1] }, { duration: PULSE, iterations: PULSES, delay: -since });
  const start = from && { transform: `translate(${from[0]}px, ${from[1]}px)`, opacity: 0.2 };
  if (piece && since < SLIDE) piece.animate([start, { transform: "none", opacity: 1 }], { duration: SLIDE, delay: -since, easing: "ease-out" });
}

const COUNT = 450;

/** Numbers that count to their new values. `show(key, number)` displays one of them. */
export class Counters {
  #values = new Map(); // {from, to, start} by key

  constructor(show) {
    this.show = show;
  }

  /** Set a number; it is displayed in any case, because its element may be new. */
  set(key, number, counts) {
    const old = this.#values.get(key);
    if (old === undefined || !counts || !moving()) this.#values.set(key, { from: number, to: number, start: 0 });
    else if (old.to !== number) this.#values.set(key, { from: this.#at(old), to: number, start: performance.now() });
    this.#draw();
  }

  #at({ from, to, start }) {
    return Math.round(from + (to - from) * Math.min(1, (performance.now() - start) / COUNT));
  }

  #draw() {
    let counting = false;
    for (const [key, value] of this.#values) {
      const number = this.#at(value);
      this.show(key, number);
      counting ||= number !== value.to;
    }
    if (counting) this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.#draw();
    });
  }
}
