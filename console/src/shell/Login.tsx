/** Logging in, by a code that the command line gives or by the token of a file. */
import { Button, Card, CardBody, CardTitle, Form, FormGroup, TextInput } from "@patternfly/react-core";
import { useEffect, useRef, useState } from "react";
import { logIn } from "../api/session";
import { Command } from "../parts/Command";
import { Errors } from "../parts/States";
import { useTexts } from "../texts/texts";
import { Logo } from "./Logo";
import { UserMenu } from "./UserMenu";

export function Login(props: { code: string | null; ended: boolean; onLogin: () => void }) {
  const { t } = useTexts();
  const [secret, setSecret] = useState("");
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const tried = useRef(false);

  const attempt = async (by: { code: string } | { secret: string }) => {
    setBusy(true);
    setError(undefined);
    try {
      await logIn(by);
      props.onLogin();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };

  useEffect(() => {
    document.title = `${t("login.title")} · Suimon`;
    if (props.code && !tried.current) {
      tried.current = true;
      void attempt({ code: props.code });
    }
  });

  return (
    <main className="login">
      <div className="login-menu"><UserMenu /></div>
      <Card className="login-card">
        <CardTitle component="h1">
          <span className="brand"><Logo /> Suimon</span>
        </CardTitle>
        <CardBody>
          {props.ended && error === undefined && <p className="spaced" role="status">{t("login.ended")}</p>}
          {error !== undefined && <div className="spaced"><Errors error={error} title={t("login.refused")} /></div>}
          <p>{t("login.about")}</p>
          <div className="spaced"><Command text="suimon console login" label={t("login.command")} /></div>
          <Form
            onSubmit={(event) => {
              event.preventDefault();
              // One field for codes and tokens.
              if (secret.trim() !== "") void attempt({ secret: secret.trim() });
            }}
          >
            <FormGroup label={t("login.secret")} fieldId="login-secret">
              <TextInput
                id="login-secret"
                type="password"
                autoComplete="off"
                autoFocus
                value={secret}
                onChange={(_event, value) => setSecret(value)}
              />
            </FormGroup>
            <Button type="submit" variant="primary" isBlock isLoading={busy} isDisabled={busy || secret.trim() === ""}>
              {t("login.action")}
            </Button>
          </Form>
        </CardBody>
      </Card>
    </main>
  );
}
