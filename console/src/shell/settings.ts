/** What the user chose of the page itself; kept by the browser. */
import { useSyncExternalStore } from "react";
import type { Language } from "../texts/texts";

export type Theme = "system" | "light" | "dark";

export interface Settings {
  language: Language;
  theme: Theme;
}

const KEY = "suimon.console";
const listeners = new Set<() => void>();

function read(): Settings {
  const byBrowser: Language = navigator.languages.find((tag) => /^(ja|en)\b/.test(tag))?.startsWith("ja") ? "ja" : "en";
  const settings: Settings = { language: byBrowser, theme: "system" };
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Settings>;
    if (kept.language === "en" || kept.language === "ja") settings.language = kept.language;
    if (kept.theme === "light" || kept.theme === "dark") settings.theme = kept.theme;
  } catch {
    // Without storage the browser's own choice holds.
  }
  return settings;
}

let settings = read();

export function choose(change: Partial<Settings>): void {
  settings = { ...settings, ...change };
  try {
    localStorage.setItem(KEY, JSON.stringify(settings));
  } catch {
    // It holds until the page is closed.
  }
  apply();
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

/** Puts theme and language on the document. */
export function apply(): void {
  const root = document.documentElement;
  root.classList.toggle("pf-v6-theme-dark", isDark());
  root.lang = settings.language;
}

systemIsDark.addEventListener("change", () => {
  apply();
  settings = { ...settings };
  for (const listener of listeners) listener();
});
