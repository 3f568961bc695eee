/** React hooks for live data. */
import { useCallback, useEffect, useState, useSyncExternalStore } from "react";
import type { Topic, Topics } from "../api/types";
import { request, RequestError } from "../api/client";
import { live, type TopicState, type ConnectionState } from "./stream";

/** Subscribes the component to a topic. Returns the latest data or error of the topic. */
export function useTopic<K extends Topic>(topic: K): TopicState<Topics[K]> {
  const subscribe = useCallback((listener: () => void) => live.subscribe(topic, listener), [topic]);
  return useSyncExternalStore(subscribe, () => live.topicState(topic));
}

/** Returns the state of the connection to the daemon. */
export function useConnection(): ConnectionState {
  return useSyncExternalStore((listener) => live.onConnectionChange(listener), () => live.connection);
}

/** Sends a GET request, and repeats it every `intervalMs` if given. Sends nothing while `path` is undefined. */
export function useRequest<T>(path: string | undefined, intervalMs?: number): RequestState<T> {
  const [state, setState] = useState<RequestState<T>>({});
  useEffect(() => {
    if (path === undefined) return;
    let isCurrent = true;
    const load = async () => {
      try {
        const data = await request<T>("GET", path);
        if (isCurrent) setState({ data });
      } catch (error) {
        if (isCurrent && error instanceof RequestError) setState((previous) => ({ data: previous.data, error }));
      }
    };
    setState({});
    void load();
    const timer = intervalMs === undefined ? undefined : setInterval(() => void load(), intervalMs);
    return () => {
      isCurrent = false;
      if (timer !== undefined) clearInterval(timer);
    };
  }, [path, intervalMs]);
  return state;
}

export interface RequestState<T> {
  data?: T;
  error?: RequestError;
}

/** Returns the current time in milliseconds since 1970, updated every second. */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
