/** Replaces timers and `Date.now` until `stop`. Time passes only by `tick`. */

interface Timer {
  dueMs: number;
  intervalMs?: number;
  callback: () => void;
}

const REAL = { setTimeout, setInterval, clearTimeout, clearInterval, now: Date.now };

export class FakeClock {
  #nowMs = 1_000_000;
  #timers = new Map<number, Timer>();
  #lastId = 0;

  constructor() {
    const add = (callback: () => void, delayMs: number, intervalMs?: number) => {
      this.#lastId += 1;
      this.#timers.set(this.#lastId, { dueMs: this.#nowMs + delayMs, intervalMs, callback });
      return this.#lastId;
    };
    const remove = (id: number) => this.#timers.delete(id);
    Object.assign(globalThis, {
      setTimeout: (callback: () => void, ms = 0) => add(callback, ms),
      setInterval: (callback: () => void, ms: number) => add(callback, ms, ms),
      clearTimeout: remove,
      clearInterval: remove,
    });
    Date.now = () => this.#nowMs;
  }

  tick(ms: number): void {
    const end = this.#nowMs + ms;
    for (;;) {
      const [next] = [...this.#timers].filter(([, timer]) => timer.dueMs <= end).sort(([, a], [, b]) => a.dueMs - b.dueMs);
      if (!next) break;
      const [id, timer] = next;
      this.#nowMs = Math.max(this.#nowMs, timer.dueMs);
      if (timer.intervalMs === undefined) this.#timers.delete(id);
      else timer.dueMs += timer.intervalMs;
      timer.callback();
    }
    this.#nowMs = end;
  }

  stop(): void {
    const { now, ...timers } = REAL;
    Object.assign(globalThis, timers);
    Date.now = now;
  }
}
