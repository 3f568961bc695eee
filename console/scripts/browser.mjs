// Runs the browser tests: headless Chromium against a live daemon.
//
//   SUIMON_CONSOLE_URL      the console, or the address with a code that `suimon console login` prints
//   SUIMON_CONSOLE_TOKEN    the token of its token_file, if the address has no code
//   SUIMON_CONSOLE_DISK     a disk with load, whose maximum the test changes and puts back (none: left out)
//   SUIMON_CONSOLE_IDLE_DISK  a disk whose client is idle most of the time, as its page has to show (none: left out)
//   SUIMON_CONSOLE_VM       a VM that runs (none: left out), a line that is typed in its serial console (_TYPED) and what comes of it
//                           (_ANSWERS)
//   SUIMON_CONSOLE_LAB      a plan of the lab that is run quick, where `suimon lab work` is there and has made a run of it
//                           before (none: left out)
//   SUIMON_CONSOLE_OUT      where screenshots go (none are taken if it is empty; screenshots/ beside this if it is not set)
//   SUIMON_CONSOLE_LOOKS    all: each page in light and dark, wide and narrow, English and Japanese
//   CHROMIUM                the browser (/usr/bin/chromium)
import { mkdtemp, rm, symlink } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
if (!process.env.SUIMON_CONSOLE_URL) {
  console.error("set SUIMON_CONSOLE_URL to what `suimon console login` prints");
  process.exit(2);
}
// Not in the repository: a signal ends this process without the clean-up below.
const out = await mkdtemp(path.join(os.tmpdir(), "suimon-console-"));
try {
  await symlink(path.join(root, "node_modules"), path.join(out, "node_modules"));
  await build({
    entryPoints: [path.join(root, "test/browser/pages.test.ts")],
    bundle: true,
    platform: "node",
    target: "node18",
    format: "esm",
    packages: "external",
    outfile: path.join(out, "pages.test.mjs"),
    logLevel: "warning",
  });
  const profile = path.join(out, "profile");
  const env = { SUIMON_CONSOLE_OUT: path.join(root, "screenshots"), ...process.env, SUIMON_CONSOLE_PROFILE: profile };
  const ran = spawnSync(process.execPath, ["--test", path.join(out, "pages.test.mjs")], { stdio: "inherit", env });
  process.exitCode = ran.status ?? 1;
} finally {
  await rm(out, { recursive: true, force: true });
}
