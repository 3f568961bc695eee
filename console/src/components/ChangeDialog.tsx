/**
 * Dialog for a change of the host: form, preview of the steps and equivalent CLI command. Shows errors of the daemon
 * and keeps the values of the form.
 */
import { Alert, Button, Checkbox, Modal, ModalBody, ModalFooter, ModalHeader, ModalVariant, Progress } from "@patternfly/react-core";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { dryRun, perform, RequestError, type ChangeRequest } from "../api/client";
import type { Operation, Plan } from "../api/types";
import { useTexts } from "../texts/texts";
import { Command } from "./Command";
import { ErrorAlert } from "./States";
import { PlanSteps } from "./PlanSteps";
import { showToast } from "./toasts";

/** Change and the equivalent CLI command. */
export interface Change extends ChangeRequest {
  command: string;
}

export interface ChangeDialogProps {
  title: string;
  /** Description below the title. */
  about?: ReactNode;
  /** Undefined while the form is invalid or changes nothing. */
  change: Change | undefined;
  /** Label of the submit button. */
  action: string;
  /** Message after success; default: "Done". */
  doneMessage?: string;
  /** Shown if the change cannot be submitted; disables the buttons. */
  disabledReason?: ReactNode;
  /** Warning about data loss or an interruption; makes the submit button red. */
  danger?: string;
  /** True if the API has no `dry_run` for the request. */
  withoutPreview?: boolean;
  /** True if the request accepts `force` after the error `overcommitted`. */
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
  const [isBusy, setIsBusy] = useState(false);
  const [force, setForce] = useState(false);
  const isMounted = useRef(true);
  useEffect(() => {
    isMounted.current = true;
    return () => {
      isMounted.current = false;
    };
  }, []);
  const changeKey = JSON.stringify(change ?? null);
  useEffect(() => {
    setError(undefined);
    setPlan(undefined);
  }, [changeKey, force]);

  const isOvercommitted = error instanceof RequestError && error.errors.some((apiError) => apiError.code === "overcommitted");
  const canSubmit = change !== undefined && props.disabledReason === undefined && !isBusy;
  const shownCommand = change && (force ? `${change.command} --force` : change.command);

  const runRequest = async (action: () => Promise<void>) => {
    setIsBusy(true);
    setError(undefined);
    try {
      await action();
    } catch (thrown) {
      setError(thrown);
    } finally {
      setIsBusy(false);
      setOperation(undefined);
    }
  };
  const preview = () => runRequest(async () => {
    if (change) setPlan(await dryRun(change, force));
  });
  const apply = () => runRequest(async () => {
    if (!change) return;
    await perform(change, force, setOperation);
    showToast(props.doneMessage ?? t("change.done"), shownCommand ?? "");
    // The user may have closed this dialog and opened another one.
    if (isMounted.current) props.onClose();
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
            if (canSubmit) void apply();
          }}
        >
          {props.children}
          <button type="submit" hidden disabled={!canSubmit} aria-hidden="true" tabIndex={-1} />
        </form>
        {props.danger && <Alert component="p" isInline isPlain variant="warning" title={props.danger} className="spaced" />}
        {props.disabledReason !== undefined && <div className="spaced">{props.disabledReason}</div>}
        {error !== undefined && <div className="spaced"><ErrorAlert error={error} /></div>}
        {(isOvercommitted || force) && props.canForce && (
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
        <Button variant={props.danger ? "danger" : "primary"} isDisabled={!canSubmit} isLoading={isBusy} onClick={() => void apply()}>
          {props.action}
        </Button>
        {!props.withoutPreview && (
          <Button variant="secondary" isDisabled={!canSubmit} onClick={() => void preview()}>
            {t("change.preview")}
          </Button>
        )}
        <Button variant="link" onClick={props.onClose}>{t("action.cancel")}</Button>
      </ModalFooter>
    </Modal>
  );
}
