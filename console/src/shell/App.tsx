/** The whole page: whether there is a session, and which page is shown. */
import { useEffect, useRef, useState } from "react";
import { onSessionEnd } from "../api/client";
import { sessionSecret } from "../api/secret";
import { logOut, readSession, type Session } from "../api/session";
import { followEvents } from "../live/event_log";
import { keepHistory } from "../live/history";
import { live } from "../live/stream";
import { Errors, Loading } from "../parts/States";
import { TextsProvider } from "../texts/texts";
import { Frame } from "./Frame";
import { Login } from "./Login";
import { PageAt } from "./PageAt";
import { go, link, placeOf, replace, usePlace } from "./router";
import { useSettings } from "./settings";

type State = { is: "asking" } | { is: "failed"; error: unknown } | { is: "out"; ended: boolean } | { is: "in"; session: Session };

const RETRY_MS = 3000;

export function App() {
  const settings = useSettings();
  const place = usePlace();
  const [state, setState] = useState<State>({ is: "asking" });
  /** Where the user was when the session ended. */
  const back = useRef<string>();

  const leave = () => {
    const here = window.location.hash;
    if (placeOf(here).path[0] !== "login") back.current = here;
    setState((before) => ({ is: "out", ended: before.is === "in" }));
  };
  const ask = async () => {
    try {
      const session = await readSession();
      if (session) setState({ is: "in", session });
      else leave();
    } catch (error) {
      setState({ is: "failed", error });
    }
  };

  useEffect(() => {
    onSessionEnd(() => void ask());
    // A tab in which the user logged in later sends its value here.
    const end = sessionSecret.listen(() => void ask());
    void ask();
    return end;
  }, []);
  useEffect(() => {
    if (state.is !== "failed") return;
    const timer = setTimeout(() => void ask(), RETRY_MS);
    return () => clearTimeout(timer);
  }, [state]);

  const isIn = state.is === "in";
  useEffect(() => {
    if (!isIn) return;
    live.start(leave);
    const ends = [keepHistory(), followEvents()];
    return () => {
      for (const end of ends) end();
      live.stop();
    };
  }, [isIn]);
  useEffect(() => {
    if (isIn && (place.path[0] === "login" || place.path.length === 0)) {
      replace(back.current && back.current.length > 2 ? back.current : link("overview"));
      back.current = undefined;
    }
  }, [isIn, place.path[0]]);

  return (
    <TextsProvider language={settings.language}>
      {state.is === "asking" && <Loading />}
      {state.is === "failed" && <main className="login"><Errors error={state.error} /></main>}
      {state.is === "out" && <Login code={place.path[0] === "login" ? place.query.get("code") : null} ended={state.ended} onLogin={() => void ask()} />}
      {state.is === "in" && (
        <Frame
          session={state.session}
          at={place.path[0] ?? "overview"}
          onLogOut={() => void logOut().finally(() => {
            go(link("login"));
            setState({ is: "out", ended: false });
          })}
        >
          <PageAt path={place.path} query={place.query} />
        </Frame>
      )}
    </TextsProvider>
  );
}
