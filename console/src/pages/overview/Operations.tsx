/** Running operations of all clients. */
import { Button, Progress } from "@patternfly/react-core";
import { useState } from "react";
import type { Operation } from "../../api/types";
import { command } from "../../api/commands";
import { ChangeDialog } from "../../components/ChangeDialog";
import { Section } from "../../components/Section";
import { useTexts } from "../../texts/texts";

export function Operations(props: { operations: readonly Operation[] }) {
  const { t } = useTexts();
  const [cancelled, setCancelled] = useState<Operation>();
  const running = props.operations.filter((operation) => operation.state === "running");
  return (
    <>
      {running.length > 0 && (
        <Section title={t("operations.title")}>
          {running.map((operation) => (
            <div key={operation.id} className="row operation">
              <Progress
                className="operation-bar"
                title={`${operation.kind} ${operation.subject}${operation.step ? `: ${operation.step}` : ""}`}
                value={operation.steps > 0 ? (100 * operation.steps_done) / operation.steps : 0}
                aria-label={operation.kind}
              />
              <Button variant="link" isInline onClick={() => setCancelled(operation)} aria-label={t("operations.cancel.title", { kind: operation.kind, subject: operation.subject })}>
                {t("operations.cancel")}
              </Button>
            </div>
          ))}
        </Section>
      )}
      {cancelled && (
        <ChangeDialog
          title={t("operations.cancel.title", { kind: cancelled.kind, subject: cancelled.subject })}
          about={t("operations.cancel.about")}
          action={t("operations.cancel")}
          withoutPreview
          change={{ method: "DELETE", path: `/1.0/operations/${cancelled.id}`, command: command("operation", "cancel", String(cancelled.id)) }}
          onClose={() => setCancelled(undefined)}
        />
      )}
    </>
  );
}
