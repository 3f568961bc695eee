// Bundles the console into dist/: index.html, and assets whose file names contain a content hash.
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const dist = path.join(root, "dist");

// Only the contents are removed: the folder and its .gitignore are in the repository.
for (const name of await readdir(dist).catch(() => [])) {
  if (name !== ".gitignore") await rm(path.join(dist, name), { recursive: true });
}
const options = {
  absWorkingDir: root,
  entryPoints: { console: "src/main.tsx" },
  bundle: true,
  minify: true,
  format: "esm",
  // Chunks for dynamic imports, such as the terminal of serial consoles.
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

// PatternFly imports the style sheets of all its components. A first build determines which components are used (each
// style sheet has a module of the same name); the second build omits the style sheets of the others.
const trialBuild = await build({ ...options, write: false });
const usedStyles = new Set();
for (const [name, output] of Object.entries(trialBuild.metafile.outputs)) {
  if (!name.endsWith(".js")) continue;
  for (const [input, { bytesInOutput }] of Object.entries(output.inputs)) {
    if (input.includes("/react-styles/css/") && bytesInOutput > 0) usedStyles.add(path.join(root, input).replace(/\.m?js$/, ".css"));
  }
}
const omitUnusedStyles = {
  name: "omit-unused-styles",
  setup(build) {
    build.onLoad({ filter: /react-styles[/\\]css[/\\].*\.css$/ }, ({ path: file }) =>
      usedStyles.has(file) ? undefined : { contents: "", loader: "css" },
    );
  },
};
const result = await build({ ...options, plugins: [omitUnusedStyles] });

const outputs = Object.keys(result.metafile.outputs);
/** Returns the URL of the entry point's output with an extension. */
const entryUrl = (extension) => {
  const output = outputs.find((name) => /\/console-[^/]*$/.test(name) && name.endsWith(extension));
  if (!output) throw new Error(`the bundle has no ${extension} file`);
  return `/assets/${path.basename(output)}`;
};
const page = await readFile(path.join(root, "src/index.html"), "utf8");
await mkdir(dist, { recursive: true });
await writeFile(
  path.join(dist, "index.html"),
  page.replace("{{style}}", entryUrl(".css")).replace("{{script}}", entryUrl(".js")),
);
for (const output of outputs) {
  const { size } = await stat(path.join(root, output));
  console.log(`${output}  ${Math.ceil(size / 1024)} KiB`);
}
