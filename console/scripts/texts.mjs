// Checks the text catalogues: keys that exist in one language only, placeholders that differ between languages, and
// texts that no source file uses.
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const src = fileURLToPath(new URL("../src/", import.meta.url));

function reportError(text) {
  console.error(text);
  process.exitCode = 1;
}

async function readCatalogue(language) {
  const folder = path.join(src, "texts", language);
  const texts = new Map();
  for (const name of await readdir(folder)) {
    const file = await readFile(path.join(folder, name), "utf8");
    for (const [, key, text] of file.matchAll(/^ {2}"([^"]+)": "((?:[^"\\]|\\.)*)",$/gm)) {
      if (texts.has(key)) reportError(`${language}/${name}: duplicate key ${key}`);
      texts.set(key, text);
    }
  }
  return texts;
}

// Placeholders in the syntax of texts.tsx: a value, or a number with singular and plural forms.
const placeholder = /\{(\w+)(?:\|[^|}]*\|[^|}]*)?\}/g;
const placeholderNames = (text) => [...text.matchAll(placeholder)].map((match) => match[1]).sort().join(" ");

const [en, ja] = [await readCatalogue("en"), await readCatalogue("ja")];
for (const [language, texts] of [["en", en], ["ja", ja]]) {
  for (const [key, text] of texts) {
    if (/[{}]/.test(text.replace(placeholder, ""))) reportError(`${language}: ${key} has an invalid placeholder`);
  }
}
for (const [key, text] of en) {
  const other = ja.get(key);
  if (other === undefined) reportError(`ja: ${key} is missing`);
  else if (other.trim() === "") reportError(`ja: ${key} is empty`);
  else if (placeholderNames(other) !== placeholderNames(text)) reportError(`${key}: placeholders {${placeholderNames(text)}} in en and {${placeholderNames(other)}} in ja`);
}
for (const key of ja.keys()) if (!en.has(key)) reportError(`en: ${key} is missing`);

const sources = [];
async function readSources(folder) {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const full = path.join(folder, entry.name);
    if (entry.isDirectory() && entry.name !== "texts") await readSources(full);
    else if (/\.tsx?$/.test(entry.name)) sources.push(await readFile(full, "utf8"));
  }
}
await readSources(src);
const code = sources.join("\n");
// Keys in template literals with a variable part, such as `attention.vm.${state}`.
const patterns = [...code.matchAll(/`([a-z][\w.-]*\.[\w.-]*\$\{[^`]*)`/g)].map(
  (match) => new RegExp(`^${match[1].split(/\$\{[^}]*\}/).map((part) => part.replaceAll(".", "\\.")).join(".+")}$`),
);
for (const key of en.keys()) {
  if (key.startsWith("label.")) continue;
  if (!code.includes(`"${key}"`) && !patterns.some((pattern) => pattern.test(key))) reportError(`en: ${key} is not used`);
}
