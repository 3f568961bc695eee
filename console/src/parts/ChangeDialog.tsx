/**
 * Asks before something is changed: what would be different, what the daemon would do, and the
 * command that does the same. What the daemon refuses is told here, and the form stays as it was.
 */
import { Alert, Button, Checkbox, Modal, ModalBody, ModalFooter, ModalHeader, ModalVariant, Progress } from "@patternfly/react-core";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { dryRun, perform, RequestFailed, type ChangeRequest } from "../api/client";
import type { Operation, Plan } from "../api/types";
import { useTexts } from "../texts/texts";
import { Command } from "./Command";
import { Errors } from "./States";
import { PlanSteps } from "./PlanSteps";
import { tell } from "./toasts";

/** A change and the command that makes it. */
export interface Change extends ChangeRequest {
  command: string;
}

export interface ChangeDialogProps {
  title: string;
  /** What the user should know before. */
  about?: ReactNode;
  /** Not there while the form says nothing new. */
  change: Change | undefined;
  /** What the button says. */
  action: string;
  /** What is said of it afterwards, if not that it is done. */
  done?: string;
  /** Why it cannot be done as it is asked for. */
  cannot?: ReactNode;
  /** Something is lost or interrupted: it is said so, and the button is red. */
  danger?: string;
  /** The request takes no `dry_run`. */
  withoutPreview?: boolean;
  /** What the daemon refuses as too much can be forced. */
  canForce?: boolean;
  onClose: () => void;
  children?: ReactNode;
}

export function ChangeDialog(props: ChangeDialogProps) {
  const { t } = useTexts();
  const { change } = props;
  const [error, setError] = useState<unknown>();
  const [plan, setPlan] = useState<Plan>();
  const [operation, setOperation] = useState<Operation>();
  const [busy, setBusy] = useState(false);
  const [force, setForce] = useState(false);
  const isOpen = useRef(true);
  useEffect(() => {
    isOpen.current = true;
    return () => {
      isOpen.current = false;
    };
  }, []);
  const asked = JSON.stringify(change ?? null);
  useEffect(() => {
    setError(undefined);
    setPlan(undefined);
  }, [asked, force]);

  const overcommitted = error instanceof RequestFailed && error.errors.some((one) => one.code === "overcommitted");
  const canAsk = change !== undefined && props.cannot === undefined && !busy;
  const shownCommand = change && (force ? `${change.command} --force` : change.command);

  const attempt = async (work: () => Promise<void>) => {
    setBusy(true);
    setError(undefined);
    try {
      await work();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
      setOperation(undefined);
    }
  };
  const preview = () => attempt(async () => {
    if (change) setPlan(await dryRun(change, force));
  });
  const apply = () => attempt(async () => {
    if (!change) return;
    await perform(change, force, setOperation);
    tell(props.done ?? t("change.done"), shownCommand ?? "");
    // It may have been closed meanwhile, and another be open in its place.
    if (isOpen.current) props.onClose();
  });

  return (
    <Modal
      isOpen
      variant={ModalVariant.medium}
      onClose={props.onClose}
      aria-labelledby="change-title"
      aria-describedby="change-body"
    >
      <ModalHeader title={props.title} labelId="change-title" description={props.about} titleIconVariant={props.danger ? "warning" : undefined} />
      <ModalBody id="change-body" tabIndex={0}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (canAsk) void apply();
          }}
        >
          {props.children}
          <button type="submit" hidden disabled={!canAsk} aria-hidden="true" tabIndex={-1} />
        </form>
        {props.danger && <Alert component="p" isInline isPlain variant="warning" title={props.danger} className="spaced" />}
        {props.cannot !== undefined && <div className="spaced">{props.cannot}</div>}
        {error !== undefined && <div className="spaced"><Errors error={error} /></div>}
        {(overcommitted || force) && props.canForce && (
          <Checkbox
            id="change-force"
            className="spaced"
            label={t("change.force")}
            description={t("change.force.about")}
            isChecked={force}
            onChange={(_event, checked) => setForce(checked)}
          />
        )}
        {plan && <div className="spaced"><h2 className="small-title">{t("change.plan")}</h2><PlanSteps plan={plan} /></div>}
        {operation && operation.steps > 0 && (
          <Progress
            className="spaced"
            aria-label={t("change.progress")}
            title={operation.step ?? operation.kind}
            value={(100 * operation.steps_done) / operation.steps}
          />
        )}
        {shownCommand
          ? <div className="spaced"><Command text={shownCommand} /></div>
          : <p className="faint spaced">{t("change.nothing.yet")}</p>}
      </ModalBody>
      <ModalFooter>
        <Button variant={props.danger ? "danger" : "primary"} isDisabled={!canAsk} isLoading={busy} onClick={() => void apply()}>
          {props.action}
        </Button>
        {!props.withoutPreview && (
          <Button variant="secondary" isDisabled={!canAsk} onClick={() => void preview()}>
            {t("change.preview")}
          </Button>
        )}
        <Button variant="link" onClick={props.onClose}>{t("action.cancel")}</Button>
      </ModalFooter>
    </Modal>
  );
}
