// Light and dark theme: the system's choice until the user chooses.

import { h, render } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./language.js";
import { preference } from "./storage.js";

const THEMES = { system: "system setting", light: t("light"), dark: t("dark") };
const ICONS = { system: "system", light: "sun", dark: "moon" };

export function applyTheme() {
  const theme = preference.get("theme", "system");
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** The current theme, "dark" or "light". */
export function shownTheme() {
  const chosen = preference.get("theme", "system");
  if (chosen !== "system") return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export function themeButton() {
  const button = h("button.quiet", {
    dataset: { focus: "theme" },
    onclick() {
      const names = Object.keys(THEMES);
      preference.set("theme", names[(names.indexOf(preference.get("theme", "system")) + 1) % names.length]);
      applyTheme();
      draw();
    },
  });
  const draw = () => {
    const theme = preference.get("theme", "system");
    button.ariaLabel = button.title = t`Change colours (now: ${t(THEMES[theme])})`;
    render(button, icon(ICONS[theme]));
  };
  draw();
  return button;
}
