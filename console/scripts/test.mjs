// Bundles the unit tests and runs them with the test runner of Node.js.
import { readdir, rm } from "node:fs/promises";
import path from "node:path";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const out = path.join(root, ".test");
await rm(out, { recursive: true, force: true });
const tests = (await readdir(path.join(root, "test/unit"))).filter((name) => name.endsWith(".test.ts"));
await build({
  entryPoints: tests.map((name) => path.join(root, "test/unit", name)),
  bundle: true,
  platform: "node",
  target: "node18",
  format: "esm",
  outdir: out,
  outExtension: { ".js": ".mjs" },
  jsx: "automatic",
  external: ["react", "react/*"],
  logLevel: "warning",
});
const files = tests.map((name) => path.join(out, name.replace(/\.ts$/, ".mjs")));
process.exit(spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status ?? 1);
