// Sound, vibration and notifications. All are off until the user switches them on.

import { h } from "./dom.js";
import { t } from "./language.js";
import { about } from "./rules.js";
import { toast } from "./speech.js";
import { preference } from "./storage.js";

const ALERTS = {
  sound: { title: "Sound", available: () => "AudioContext" in window },
  vibration: { title: "Vibration", available: () => "vibrate" in navigator && matchMedia("(pointer: coarse)").matches },
  notification: { title: "Notify me at my turn", available: () => "Notification" in window },
};

const isOn = (name) => preference.get(name, false) && ALERTS[name].available();

// ---- Sound: tones of [frequency in hertz, start, duration in seconds]

const SOUNDS = {
  move: [[196, 0, 0.09], [588, 0, 0.04]],
  turn: [[587, 0, 0.12], [784, 0.11, 0.2]],
  won: [[523, 0, 0.14], [659, 0.13, 0.14], [784, 0.26, 0.35]],
  over: [[392, 0, 0.18], [330, 0.17, 0.35]],
};
const VOLUME = 0.18;
let audio;

function sound(name) {
  audio ??= new AudioContext();
  audio.resume();
  for (const [frequency, start, seconds] of SOUNDS[name]) {
    const tone = new OscillatorNode(audio, { type: "triangle", frequency });
    const gain = new GainNode(audio, { gain: 0 });
    const at = audio.currentTime + 0.01 + start;
    gain.gain.setValueAtTime(VOLUME, at);
    gain.gain.exponentialRampToValueAtTime(0.001, at + seconds);
    tone.connect(gain).connect(audio.destination);
    tone.start(at);
    tone.stop(at + seconds);
  }
}

const VIBRATIONS = { move: 25, turn: [40, 60, 40], won: [60, 60, 60, 60, 120], over: 120 };

function play(name) {
  if (!navigator.userActivation?.hasBeenActive) return; // browsers refuse both before the first click or key
  if (isOn("sound")) sound(name);
  if (isOn("vibration")) navigator.vibrate(VIBRATIONS[name]);
}

function notify(title, body, tag) {
  const note = new Notification(title, { body, tag, icon: new URL("./icon-192.png", import.meta.url).href });
  note.onclick = () => {
    window.focus();
    note.close();
  };
}

/** Alert the user to a change of a game: a move, the user's turn, or the end. */
export function alertTo(game, { moved, turned, ended }) {
  if (ended) play(game.winners.includes(game.you) ? "won" : "over");
  else if (turned) play("turn");
  else if (moved) play("move");
  if ((turned || ended) && document.hidden && isOn("notification") && Notification.permission === "granted") {
    notify(t(ended ? "The game is over" : "Your turn"), about(game.game).title, game.id);
  }
}

// ---- Switches

/** Ask for the permission, and show a first notification, because some browsers offer the permission but not the notes. */
async function mayNotify() {
  if ((await Notification.requestPermission()) !== "granted") throw new Error("This browser does not allow notifications of this page.");
  try {
    notify(t("Notifications are on"), t("You are notified here while another tab or window is in front."), "test");
  } catch {
    throw new Error("This browser does not show notifications of pages.");
  }
}

async function change(name, input) {
  preference.set(name, input.checked);
  if (!input.checked) return;
  try {
    if (name === "notification") await mayNotify();
    else play("turn");
  } catch (error) {
    preference.set(name, false);
    input.checked = false;
    toast(error.message, "bad");
  }
}

/** The switches that this browser can offer. */
export function alertSwitches() {
  return Object.entries(ALERTS)
    .filter(([, { available }]) => available())
    .map(([name, { title }]) =>
      h("label.switch", {}, h("input", { type: "checkbox", checked: isOn(name), dataset: { focus: `alert-${name}` }, onchange: (event) => change(name, event.target) }), title),
    );
}
