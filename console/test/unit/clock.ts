/** Time that passes when a test says so. */

interface Timer {
  atMs: number;
  everyMs?: number;
  call: () => void;
}

const REAL = { setTimeout, setInterval, clearTimeout, clearInterval, now: Date.now };

export class Clock {
  #nowMs = 1_000_000;
  #timers = new Map<number, Timer>();
  #last = 0;

  constructor() {
    const add = (call: () => void, afterMs: number, everyMs?: number) => {
      this.#last += 1;
      this.#timers.set(this.#last, { atMs: this.#nowMs + afterMs, everyMs, call });
      return this.#last;
    };
    const remove = (id: number) => this.#timers.delete(id);
    Object.assign(globalThis, {
      setTimeout: (call: () => void, ms = 0) => add(call, ms),
      setInterval: (call: () => void, ms: number) => add(call, ms, ms),
      clearTimeout: remove,
      clearInterval: remove,
    });
    Date.now = () => this.#nowMs;
  }

  tick(ms: number): void {
    const end = this.#nowMs + ms;
    for (;;) {
      const [next] = [...this.#timers].filter(([, timer]) => timer.atMs <= end).sort(([, a], [, b]) => a.atMs - b.atMs);
      if (!next) break;
      const [id, timer] = next;
      this.#nowMs = Math.max(this.#nowMs, timer.atMs);
      if (timer.everyMs === undefined) this.#timers.delete(id);
      else timer.atMs += timer.everyMs;
      timer.call();
    }
    this.#nowMs = end;
  }

  stop(): void {
    const { now, ...timers } = REAL;
    Object.assign(globalThis, timers);
    Date.now = now;
  }
}
