/** What stands in a page's place while there is nothing to show, or something is wrong. */
import { Alert, Bullseye, EmptyState, EmptyStateBody, List, ListItem, Spinner } from "@patternfly/react-core";
import type { ComponentType, ReactNode } from "react";
import type { ApiError } from "../api/types";
import { RequestFailed } from "../api/client";
import type { Heard } from "../live/stream";
import { useTexts } from "../texts/texts";

export function Loading() {
  const { t } = useTexts();
  return (
    <Bullseye className="loading">
      <Spinner aria-label={t("state.loading")} />
    </Bullseye>
  );
}

export function Empty(props: { title: string; icon?: ComponentType; children?: ReactNode }) {
  return (
    <EmptyState titleText={props.title} headingLevel="h2" icon={props.icon} variant="sm">
      <EmptyStateBody>{props.children}</EmptyStateBody>
    </EmptyState>
  );
}

/** What the daemon refused, each error with what it is about and what to do. */
export function Errors(props: { error: unknown; title?: string }) {
  const { t } = useTexts();
  const { error } = props;
  if (!(error instanceof RequestFailed)) {
    return <Alert component="p" isInline variant="danger" title={props.title ?? t("error.page")}>{String(error)}</Alert>;
  }
  if (error.isUnreachable) {
    return (
      <Alert component="p" isInline variant="danger" title={t("error.unreachable")}>
        {t("error.unreachable.remedy")}
      </Alert>
    );
  }
  return <ApiErrors errors={error.errors} status={error.status} title={props.title} />;
}

export function ApiErrors(props: { errors: readonly ApiError[]; status: number; title?: string }) {
  const { t } = useTexts();
  const { errors } = props;
  if (errors.length === 0) {
    return (
      <Alert component="p" isInline variant="danger" title={props.title ?? t("error.status", { status: props.status })}>
        {t("error.status.remedy")}
      </Alert>
    );
  }
  return (
    <Alert component="p" isInline variant="danger" title={props.title ?? t("error.refused")}>
      <List isPlain>
        {errors.map((error, at) => (
          <ListItem key={at}>
            <strong>{[error.resource, error.field].filter(Boolean).join(" · ")}</strong>
            {error.resource || error.field ? ": " : ""}
            {error.message} <span className="faint">({error.code})</span>
          </ListItem>
        ))}
      </List>
    </Alert>
  );
}

/** Shows its content when every topic was heard; waits, or tells the error, until then. */
export function WhenHeard(props: { of: Heard<unknown>[]; children: () => ReactNode }) {
  const failed = props.of.find((heard) => heard.error);
  const ready = props.of.every((heard) => heard.data !== undefined);
  return (
    <>
      {failed?.error && <ApiErrors errors={failed.error.body?.errors ?? []} status={failed.error.status} />}
      {ready ? props.children() : !failed && <Loading />}
    </>
  );
}
