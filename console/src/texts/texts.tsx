/** The page's texts in the user's language. */
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
  /** A word of the API, such as a state, as people say it; itself where there is no text. */
  word: (value: string | null | undefined) => string;
}

/**
 * The text of a key, with what stands in braces filled in: `{name}` is a value, `{name|one|other}` a
 * number and the words that agree with it.
 */
export function text(language: Language, key: Key, params: Params = {}): string {
  const slot = /\{(\w+)(?:\|([^|}]*)\|([^|}]*))?\}/g;
  return CATALOGUES[language][key].replace(slot, (all, name: string, one?: string, other?: string) => {
    const value = params[name];
    if (value === undefined) return all;
    if (one === undefined) return String(value);
    return `${value} ${String(value) === "1" ? one : other}`;
  });
}

export function textsOf(language: Language): Texts {
  return {
    language,
    t: (key, params) => text(language, key, params),
    word: (value) => {
      if (value === null || value === undefined) return "–";
      const key = `word.${value}`;
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
