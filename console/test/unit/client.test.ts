import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";
import { dryRun, onSessionEnd, perform, request, RequestError } from "../../src/api/client";

type MockResponse = [status: number, body?: unknown];

/** Responds to requests in order. Returns the list of received requests. */
function mockResponses(...responses: MockResponse[]): { method: string; url: string; headers: Record<string, string>; body?: string }[] {
  const requests: ReturnType<typeof mockResponses> = [];
  mock.method(globalThis, "fetch", async (url: string, init: RequestInit) => {
    requests.push({ method: init.method ?? "GET", url, headers: init.headers as Record<string, string>, body: init.body as string | undefined });
    const [status, body] = responses[requests.length - 1] ?? [500];
    return new Response(body === undefined ? null : JSON.stringify(body), { status });
  });
  return requests;
}

afterEach(() => mock.restoreAll());

const operation = (state: string, error?: unknown) => ({ id: 7, kind: "disk set", subject: "disk/web", state, steps: 1, steps_done: 0, error, started_unix_ms: 0 });
const change = { method: "PATCH" as const, path: "/1.0/disks/web", body: { qos: { min_iops: 5 } } };

test("a change is sent as a merge patch with the console header, and awaited until its operation ends", async () => {
  const requests = mockResponses([202, operation("running")], [200, operation("running")], [200, operation("succeeded")]);
  const states: string[] = [];
  assert.equal((await perform(change, false, (current) => states.push(current.state)))?.state, "succeeded");
  assert.deepEqual(states, ["running", "running", "succeeded"]);
  assert.deepEqual(requests.map((sent) => `${sent.method} ${sent.url}`), ["PATCH /1.0/disks/web", "GET /1.0/operations/7/wait?timeout_s=1", "GET /1.0/operations/7/wait?timeout_s=1"]);
  assert.equal(requests[0]?.headers["X-Suimon-Console"], "1");
  assert.equal(requests[0]?.headers["Content-Type"], "application/merge-patch+json");
  assert.equal(requests[1]?.headers["X-Suimon-Console"], undefined);
});

test("a preview is a dry run with the force flag of the change", async () => {
  const requests = mockResponses([200, { steps: [] }]);
  await dryRun(change, true);
  assert.equal(requests[0]?.url, "/1.0/disks/web?dry_run=true&force=true");
});

test("a rejected, failed or cancelled change throws the error of the daemon", async () => {
  const error = { code: "overcommitted", message: "lower minimums by 5 IOPS", resource: "store/fast" };
  for (const responses of [[[422, { errors: [error] }]], [[202, operation("failed", error)]], [[202, operation("cancelled", error)]]] as MockResponse[][]) {
    mockResponses(...responses);
    await assert.rejects(perform(change, false), (thrown: RequestError) => thrown.errors[0]?.message === error.message);
    mock.restoreAll();
  }
});

test("the state cancelled is success for the cancellation of an operation", async () => {
  mockResponses([200, operation("running")], [200, operation("cancelled")]);
  assert.equal((await perform({ method: "DELETE", path: "/1.0/operations/7" }, false))?.state, "cancelled");
});

test("a missing response and a response without an API error are distinguished", async () => {
  mock.method(globalThis, "fetch", async () => Promise.reject(new TypeError("no route")));
  await assert.rejects(request("GET", "/1.0"), (error: RequestError) => error.isUnreachable);
  mock.restoreAll();
  mock.method(globalThis, "fetch", async () => new Response("<html>", { status: 502 }));
  await assert.rejects(request("GET", "/1.0"), (error: RequestError) => error.status === 502 && error.errors.length === 0);
});

test("the end of a session is detected by requests of the API, not by login requests", async () => {
  let sessionEnds = 0;
  onSessionEnd(() => (sessionEnds += 1));
  mockResponses([401, { errors: [] }], [401, { errors: [] }]);
  await assert.rejects(request("GET", "/1.0/disks"));
  assert.equal(sessionEnds, 1);
  await assert.rejects(request("POST", "/console/session", { code: "invalid" }));
  assert.equal(sessionEnds, 1);
});
