/** Changes that are under way, whoever asked for them. */
import { Button, Progress } from "@patternfly/react-core";
import { useState } from "react";
import type { Operation } from "../../api/types";
import { command } from "../../api/commands";
import { ChangeDialog } from "../../parts/ChangeDialog";
import { Section } from "../../parts/Section";
import { useTexts } from "../../texts/texts";

export function Operations(props: { operations: readonly Operation[] }) {
  const { t } = useTexts();
  const [asked, setAsked] = useState<Operation>();
  const running = props.operations.filter((one) => one.state === "running");
  return (
    <>
      {running.length > 0 && (
        <Section title={t("operations.title")}>
          {running.map((one) => (
            <div key={one.id} className="row operation">
              <Progress
                className="operation-bar"
                title={`${one.kind} ${one.subject}${one.step ? `: ${one.step}` : ""}`}
                value={one.steps > 0 ? (100 * one.steps_done) / one.steps : 0}
                aria-label={one.kind}
              />
              <Button variant="link" isInline onClick={() => setAsked(one)} aria-label={t("operations.cancel.title", { kind: one.kind, subject: one.subject })}>
                {t("operations.cancel")}
              </Button>
            </div>
          ))}
        </Section>
      )}
      {asked && (
        <ChangeDialog
          title={t("operations.cancel.title", { kind: asked.kind, subject: asked.subject })}
          about={t("operations.cancel.about")}
          action={t("operations.cancel")}
          withoutPreview
          change={{ method: "DELETE", path: `/1.0/operations/${asked.id}`, command: command("operation", "cancel", String(asked.id)) }}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  );
}
