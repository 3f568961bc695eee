// Says what is wrong with the catalogues of texts: keys that one language lacks or has beyond the
// other, braces that differ, and texts that nothing shows.
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const src = fileURLToPath(new URL("../src/", import.meta.url));

async function catalogue(language) {
  const folder = path.join(src, "texts", language);
  const texts = new Map();
  for (const name of await readdir(folder)) {
    const file = await readFile(path.join(folder, name), "utf8");
    for (const [, key, text] of file.matchAll(/^ {2}"([^"]+)": "((?:[^"\\]|\\.)*)",$/gm)) {
      if (texts.has(key)) console.error(`${language}/${name}: ${key} is there twice`), (process.exitCode = 1);
      texts.set(key, text);
    }
  }
  return texts;
}

// As texts.tsx reads them: a value, or a number and the words that agree with it.
const slot = /\{(\w+)(?:\|[^|}]*\|[^|}]*)?\}/g;
const braces = (text) => [...text.matchAll(slot)].map((found) => found[1]).sort().join(" ");
const wrong = (text) => {
  console.error(text);
  process.exitCode = 1;
};

const [en, ja] = [await catalogue("en"), await catalogue("ja")];
for (const [language, texts] of [["en", en], ["ja", ja]]) {
  for (const [key, text] of texts) {
    if (/[{}]/.test(text.replace(slot, ""))) wrong(`${language}: ${key} has a slot that is not understood`);
  }
}
for (const [key, text] of en) {
  const other = ja.get(key);
  if (other === undefined) wrong(`ja lacks ${key}`);
  else if (other.trim() === "") wrong(`ja: ${key} is empty`);
  else if (braces(other) !== braces(text)) wrong(`${key} has {${braces(text)}} in en and {${braces(other)}} in ja`);
}
for (const key of ja.keys()) if (!en.has(key)) wrong(`ja has ${key}, en does not`);

const sources = [];
async function gather(folder) {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const full = path.join(folder, entry.name);
    if (entry.isDirectory() && entry.name !== "texts") await gather(full);
    else if (/\.tsx?$/.test(entry.name)) sources.push(await readFile(full, "utf8"));
  }
}
await gather(src);
const code = sources.join("\n");
// A key may be made of a part that is written and one that is not: `attention.vm.${state}`.
const patterns = [...code.matchAll(/`([a-z][\w.-]*\.[\w.-]*\$\{[^`]*)`/g)].map(
  (found) => new RegExp(`^${found[1].split(/\$\{[^}]*\}/).map((part) => part.replaceAll(".", "\\.")).join(".+")}$`),
);
for (const key of en.keys()) {
  if (key.startsWith("word.")) continue;
  if (!code.includes(`"${key}"`) && !patterns.some((pattern) => pattern.test(key))) wrong(`nothing shows ${key}`);
}
