import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";
import { dryRun, onSessionEnd, perform, request, RequestFailed } from "../../src/api/client";

type Answer = [status: number, body?: unknown];

/** Answers requests in order, and says what was asked. */
function answers(...all: Answer[]): { method: string; url: string; headers: Record<string, string>; body?: string }[] {
  const asked: ReturnType<typeof answers> = [];
  mock.method(globalThis, "fetch", async (url: string, init: RequestInit) => {
    asked.push({ method: init.method ?? "GET", url, headers: init.headers as Record<string, string>, body: init.body as string | undefined });
    const [status, body] = all[asked.length - 1] ?? [500];
    return new Response(body === undefined ? null : JSON.stringify(body), { status });
  });
  return asked;
}

afterEach(() => mock.restoreAll());

const operation = (state: string, error?: unknown) => ({ id: 7, kind: "disk set", subject: "disk/web", state, steps: 1, steps_done: 0, error, started_unix_ms: 0 });
const change = { method: "PATCH" as const, path: "/1.0/disks/web", body: { qos: { min_iops: 5 } } };

test("a change carries the page's header and a merge patch, and is followed to its end", async () => {
  const asked = answers([202, operation("running")], [200, operation("running")], [200, operation("succeeded")]);
  const states: string[] = [];
  assert.equal((await perform(change, false, (one) => states.push(one.state)))?.state, "succeeded");
  assert.deepEqual(states, ["running", "running", "succeeded"]);
  assert.deepEqual(asked.map((one) => `${one.method} ${one.url}`), ["PATCH /1.0/disks/web", "GET /1.0/operations/7/wait?timeout_s=1", "GET /1.0/operations/7/wait?timeout_s=1"]);
  assert.equal(asked[0]?.headers["X-Suimon-Console"], "1");
  assert.equal(asked[0]?.headers["Content-Type"], "application/merge-patch+json");
  assert.equal(asked[1]?.headers["X-Suimon-Console"], undefined);
});

test("a preview is a dry run, forced if the change would be", async () => {
  const asked = answers([200, { steps: [] }]);
  await dryRun(change, true);
  assert.equal(asked[0]?.url, "/1.0/disks/web?dry_run=true&force=true");
});

test("what is refused, fails or is cancelled by somebody is told in the daemon's words", async () => {
  const error = { code: "overcommitted", message: "lower minimums by 5 IOPS", resource: "store/fast" };
  for (const all of [[[422, { errors: [error] }]], [[202, operation("failed", error)]], [[202, operation("cancelled", error)]]] as Answer[][]) {
    answers(...all);
    await assert.rejects(perform(change, false), (failure: RequestFailed) => failure.errors[0]?.message === error.message);
    mock.restoreAll();
  }
});

test("cancelling an operation is done when it has been cancelled", async () => {
  answers([200, operation("running")], [200, operation("cancelled")]);
  assert.equal((await perform({ method: "DELETE", path: "/1.0/operations/7" }, false))?.state, "cancelled");
});

test("no answer, and an answer that is not the API's, are told apart", async () => {
  mock.method(globalThis, "fetch", async () => Promise.reject(new TypeError("no route")));
  await assert.rejects(request("GET", "/1.0"), (failure: RequestFailed) => failure.isUnreachable);
  mock.restoreAll();
  mock.method(globalThis, "fetch", async () => new Response("<html>", { status: 502 }));
  await assert.rejects(request("GET", "/1.0"), (failure: RequestFailed) => failure.status === 502 && failure.errors.length === 0);
});

test("a session that is over is noticed by any request of the API, and not by the login's own", async () => {
  let ends = 0;
  onSessionEnd(() => (ends += 1));
  answers([401, { errors: [] }], [401, { errors: [] }]);
  await assert.rejects(request("GET", "/1.0/disks"));
  assert.equal(ends, 1);
  await assert.rejects(request("POST", "/console/session", { code: "no" }));
  assert.equal(ends, 1);
});
