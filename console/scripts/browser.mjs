// Runs the browser tests: headless Chromium against a live daemon.
//
//   SUIMON_CONSOLE_URL         URL of the console, or the login URL that `suimon console login` prints (required)
//   SUIMON_CONSOLE_TOKEN       token of [console] token_file; required if the URL has no code
//   SUIMON_CONSOLE_DISK        disk with load; the test changes its maximum and restores it (unset: test is skipped)
//   SUIMON_CONSOLE_IDLE_DISK   disk whose client is idle most of the time (unset: check is skipped)
//   SUIMON_CONSOLE_VM          running VM whose serial console is used (unset: test is skipped)
//   SUIMON_CONSOLE_VM_TYPED    line that is typed into the serial console
//   SUIMON_CONSOLE_VM_ANSWERS  output of the guest that the line causes
//   SUIMON_CONSOLE_LAB         lab plan that is run at the quick scale; requires a running `suimon lab work` and an
//                              earlier run of the plan (unset: tests are skipped)
//   SUIMON_CONSOLE_OUT         folder of screenshots (default: screenshots/; empty: no screenshots)
//   SUIMON_CONSOLE_LOOKS       all: checks each page in light and dark, wide and narrow, English and Japanese
//   CHROMIUM                   path of the browser (default: /usr/bin/chromium)
import { mkdtemp, rm, symlink } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
if (!process.env.SUIMON_CONSOLE_URL) {
  console.error("SUIMON_CONSOLE_URL is not set; set it to the URL that `suimon console login` prints");
  process.exit(2);
}
// A temporary folder outside the repository, because a signal ends this process without the clean-up below.
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
  const result = spawnSync(process.execPath, ["--test", path.join(out, "pages.test.mjs")], { stdio: "inherit", env });
  process.exitCode = result.status ?? 1;
} finally {
  await rm(out, { recursive: true, force: true });
}
