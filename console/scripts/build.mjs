// Bundles the console into dist/: index.html, and assets whose names carry a hash.
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const dist = path.join(root, "dist");

// The folder itself stays, for it is there in a fresh checkout, too.
for (const name of await readdir(dist).catch(() => [])) {
  if (name !== ".gitignore") await rm(path.join(dist, name), { recursive: true });
}
const options = {
  absWorkingDir: root,
  entryPoints: { console: "src/main.tsx" },
  bundle: true,
  minify: true,
  format: "esm",
  // What a page loads when it is wanted first.
  splitting: true,
  chunkNames: "[name]-[hash]",
  target: ["es2022"],
  jsx: "automatic",
  outdir: "dist/assets",
  entryNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  publicPath: "/assets",
  loader: { ".woff2": "file", ".woff": "file", ".ttf": "empty", ".eot": "empty", ".svg": "file", ".png": "file", ".jpg": "file" },
  define: { "process.env.NODE_ENV": '"production"' },
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
};

// PatternFly imports the styles of all its components, used or not. Those stay whose names (a
// module beside each style sheet) are used in what a first build has made.
const first = await build({ ...options, write: false });
const used = new Set();
for (const [name, output] of Object.entries(first.metafile.outputs)) {
  if (!name.endsWith(".js")) continue;
  for (const [input, { bytesInOutput }] of Object.entries(output.inputs)) {
    if (input.includes("/react-styles/css/") && bytesInOutput > 0) used.add(path.join(root, input).replace(/\.m?js$/, ".css"));
  }
}
const onlyUsedStyles = {
  name: "only-used-styles",
  setup(build) {
    build.onLoad({ filter: /react-styles[/\\]css[/\\].*\.css$/ }, ({ path: file }) =>
      used.has(file) ? undefined : { contents: "", loader: "css" },
    );
  },
};
const result = await build({ ...options, plugins: [onlyUsedStyles] });

const outputs = Object.keys(result.metafile.outputs);
const named = (end) => {
  const found = outputs.find((output) => /\/console-[^/]*$/.test(output) && output.endsWith(end));
  if (!found) throw new Error(`the bundle has no ${end} file`);
  return `/assets/${path.basename(found)}`;
};
const page = await readFile(path.join(root, "src/index.html"), "utf8");
await mkdir(dist, { recursive: true });
await writeFile(
  path.join(dist, "index.html"),
  page.replace("{{style}}", named(".css")).replace("{{script}}", named(".js")),
);
for (const output of outputs) {
  const { size } = await stat(path.join(root, output));
  console.log(`${output}  ${Math.ceil(size / 1024)} KiB`);
}
