/** Translations of the texts of the console. */
import { createContext, useContext, useMemo, type ReactNode } from "react";
import { en, type Key } from "./en";
import { ja } from "./ja";

export type Language = "en" | "ja";
export type { Key };

const CATALOGUES: Record<Language, Record<Key, string>> = { en, ja };

export type Params = Record<string, string | number>;

export interface Texts {
  language: Language;
  t: (key: Key, params?: Params) => string;
  /** Returns the display text of an API value, such as a state (key `label.VALUE`); the value itself without a text. */
  label: (value: string | null | undefined) => string;
}

/**
 * Returns the text of a key with its placeholders replaced: `{name}` is a value, `{name|singular|plural}` is a number
 * followed by the form that agrees with it.
 */
export function text(language: Language, key: Key, params: Params = {}): string {
  const placeholder = /\{(\w+)(?:\|([^|}]*)\|([^|}]*))?\}/g;
  return CATALOGUES[language][key].replace(placeholder, (match, name: string, singular?: string, plural?: string) => {
    const value = params[name];
    if (value === undefined) return match;
    if (singular === undefined) return String(value);
    return `${value} ${String(value) === "1" ? singular : plural}`;
  });
}

export function textsOf(language: Language): Texts {
  return {
    language,
    t: (key, params) => text(language, key, params),
    label: (value) => {
      if (value === null || value === undefined) return "–";
      const key = `label.${value}`;
      return key in CATALOGUES.en ? CATALOGUES[language][key as Key] : value.replaceAll("_", " ");
    },
  };
}

const Context = createContext<Texts>(textsOf("en"));

export function TextsProvider(props: { language: Language; children: ReactNode }) {
  const texts = useMemo(() => textsOf(props.language), [props.language]);
  return <Context.Provider value={texts}>{props.children}</Context.Provider>;
}

export function useTexts(): Texts {
  return useContext(Context);
}
