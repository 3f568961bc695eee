/** Login page: login with a one-time code from the CLI, or with the token of a file. */
import { Button, Card, CardBody, CardTitle, Form, FormGroup, TextInput } from "@patternfly/react-core";
import { useEffect, useRef, useState } from "react";
import { logIn } from "../api/session";
import { Command } from "../components/Command";
import { ErrorAlert } from "../components/States";
import { useTexts } from "../texts/texts";
import { Logo } from "./Logo";
import { UserMenu } from "./UserMenu";

export function Login(props: { code: string | null; sessionEnded: boolean; onLogin: () => void }) {
  const { t } = useTexts();
  const [secret, setSecret] = useState("");
  const [error, setError] = useState<unknown>();
  const [isBusy, setIsBusy] = useState(false);
  const codeSubmitted = useRef(false);

  const submit = async (credential: { code: string } | { secret: string }) => {
    setIsBusy(true);
    setError(undefined);
    try {
      await logIn(credential);
      props.onLogin();
    } catch (thrown) {
      setError(thrown);
    } finally {
      setIsBusy(false);
    }
  };

  useEffect(() => {
    document.title = `${t("login.title")} · Suimon`;
    if (props.code && !codeSubmitted.current) {
      codeSubmitted.current = true;
      void submit({ code: props.code });
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
          {props.sessionEnded && error === undefined && <p className="spaced" role="status">{t("login.ended")}</p>}
          {error !== undefined && <div className="spaced"><ErrorAlert error={error} title={t("login.refused")} /></div>}
          <p>{t("login.about")}</p>
          <div className="spaced"><Command text="suimon console login" label={t("login.command")} /></div>
          <Form
            onSubmit={(event) => {
              event.preventDefault();
              // The field accepts codes and tokens.
              if (secret.trim() !== "") void submit({ secret: secret.trim() });
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
            <Button type="submit" variant="primary" isBlock isLoading={isBusy} isDisabled={isBusy || secret.trim() === ""}>
              {t("login.action")}
            </Button>
          </Form>
        </CardBody>
      </Card>
    </main>
  );
}
