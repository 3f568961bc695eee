/** Live data in components. */
import { useCallback, useEffect, useState, useSyncExternalStore } from "react";
import type { Topic, Topics } from "../api/types";
import { request, RequestFailed } from "../api/client";
import { live, type Heard, type LineState } from "./stream";

/** The last answer of a topic, while the component is shown. */
export function useTopic<K extends Topic>(topic: K): Heard<Topics[K]> {
  const subscribe = useCallback((listener: () => void) => live.subscribe(topic, listener), [topic]);
  return useSyncExternalStore(subscribe, () => live.heard(topic));
}

export function useLine(): LineState {
  return useSyncExternalStore((listener) => live.onLine(listener), () => live.state);
}

/** An answer that is asked for once, and again every `everyMs` if that is given. */
export function useAnswer<T>(path: string | undefined, everyMs?: number): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({});
  useEffect(() => {
    if (path === undefined) return;
    let current = true;
    const ask = async () => {
      try {
        const data = await request<T>("GET", path);
        if (current) setAnswer({ data });
      } catch (error) {
        if (current && error instanceof RequestFailed) setAnswer((before) => ({ data: before.data, error }));
      }
    };
    setAnswer({});
    void ask();
    const timer = everyMs === undefined ? undefined : setInterval(() => void ask(), everyMs);
    return () => {
      current = false;
      if (timer !== undefined) clearInterval(timer);
    };
  }, [path, everyMs]);
  return answer;
}

export interface Answer<T> {
  data?: T;
  error?: RequestFailed;
}

/** The present moment, anew every second. */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
