/** Language and theme, stored in the browser. */
import { useSyncExternalStore } from "react";
import type { Language } from "../texts/texts";

export type Theme = "system" | "light" | "dark";

export interface Settings {
  language: Language;
  theme: Theme;
}

const STORAGE_KEY = "suimon.console";
const listeners = new Set<() => void>();

function readSettings(): Settings {
  const browserLanguage: Language = navigator.languages.find((tag) => /^(ja|en)\b/.test(tag))?.startsWith("ja") ? "ja" : "en";
  const settings: Settings = { language: browserLanguage, theme: "system" };
  try {
    const stored = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}") as Partial<Settings>;
    if (stored.language === "en" || stored.language === "ja") settings.language = stored.language;
    if (stored.theme === "light" || stored.theme === "dark") settings.theme = stored.theme;
  } catch {
    // Without access to the storage, the defaults apply.
  }
  return settings;
}

let settings = readSettings();

export function updateSettings(change: Partial<Settings>): void {
  settings = { ...settings, ...change };
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(settings));
  } catch {
    // Without access to the storage, the settings apply until the page is closed.
  }
  applySettings();
  for (const listener of listeners) listener();
}

export function useSettings(): Settings {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => settings,
  );
}

const systemIsDark = window.matchMedia("(prefers-color-scheme: dark)");

export function isDark(): boolean {
  return settings.theme === "dark" || (settings.theme === "system" && systemIsDark.matches);
}

/** Applies theme and language to the document. */
export function applySettings(): void {
  const root = document.documentElement;
  root.classList.toggle("pf-v6-theme-dark", isDark());
  root.lang = settings.language;
}

systemIsDark.addEventListener("change", () => {
  applySettings();
  settings = { ...settings };
  for (const listener of listeners) listener();
});
