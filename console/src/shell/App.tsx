/** Root component: shows the login page, or the current page if there is a session. */
import { useEffect, useRef, useState } from "react";
import { onSessionEnd } from "../api/client";
import { sessionSecret } from "../api/secret";
import { logOut, readSession, type Session } from "../api/session";
import { followEvents } from "../live/event_log";
import { recordHistory } from "../live/history";
import { live } from "../live/stream";
import { ErrorAlert, Loading } from "../components/States";
import { TextsProvider } from "../texts/texts";
import { Layout } from "./Layout";
import { Login } from "./Login";
import { Routes } from "./Routes";
import { parseRoute } from "./route";
import { link, navigate, replaceRoute, useRoute } from "./router";
import { useSettings } from "./settings";

/** Login state. `sessionEnded` is true if the user was logged in before. */
type State =
  | { status: "checking" }
  | { status: "failed"; error: unknown }
  | { status: "logged-out"; sessionEnded: boolean }
  | { status: "logged-in"; session: Session };

/** Delay before the session is checked again after an error. */
const RETRY_MS = 3000;

export function App() {
  const settings = useSettings();
  const route = useRoute();
  const [state, setState] = useState<State>({ status: "checking" });
  /** Route that was shown when the session ended. */
  const returnTo = useRef<string>();

  const showLogin = () => {
    const currentHash = window.location.hash;
    if (parseRoute(currentHash).path[0] !== "login") returnTo.current = currentHash;
    setState((previous) => ({ status: "logged-out", sessionEnded: previous.status === "logged-in" }));
  };
  const checkSession = async () => {
    try {
      const session = await readSession();
      if (session) setState({ status: "logged-in", session });
      else showLogin();
    } catch (error) {
      setState({ status: "failed", error });
    }
  };

  useEffect(() => {
    onSessionEnd(() => void checkSession());
    // After a login in another tab, that tab sends its secret.
    const stopListening = sessionSecret.listen(() => void checkSession());
    void checkSession();
    return stopListening;
  }, []);
  useEffect(() => {
    if (state.status !== "failed") return;
    const timer = setTimeout(() => void checkSession(), RETRY_MS);
    return () => clearTimeout(timer);
  }, [state]);

  const isLoggedIn = state.status === "logged-in";
  useEffect(() => {
    if (!isLoggedIn) return;
    live.start(showLogin);
    const unsubscribers = [recordHistory(), followEvents()];
    return () => {
      for (const unsubscribe of unsubscribers) unsubscribe();
      live.stop();
    };
  }, [isLoggedIn]);
  useEffect(() => {
    if (isLoggedIn && (route.path[0] === "login" || route.path.length === 0)) {
      replaceRoute(returnTo.current && returnTo.current.length > 2 ? returnTo.current : link("overview"));
      returnTo.current = undefined;
    }
  }, [isLoggedIn, route.path[0]]);

  return (
    <TextsProvider language={settings.language}>
      {state.status === "checking" && <Loading />}
      {state.status === "failed" && <main className="login"><ErrorAlert error={state.error} /></main>}
      {state.status === "logged-out" && <Login code={route.path[0] === "login" ? route.query.get("code") : null} sessionEnded={state.sessionEnded} onLogin={() => void checkSession()} />}
      {state.status === "logged-in" && (
        <Layout
          session={state.session}
          page={route.path[0] ?? "overview"}
          onLogOut={() => void logOut().finally(() => {
            navigate(link("login"));
            setState({ status: "logged-out", sessionEnded: false });
          })}
        >
          <Routes path={route.path} query={route.query} />
        </Layout>
      )}
    </TextsProvider>
  );
}
