/** Components for loading, empty and error states. */
import { Alert, Bullseye, EmptyState, EmptyStateBody, List, ListItem, Spinner } from "@patternfly/react-core";
import type { ComponentType, ReactNode } from "react";
import type { ApiError } from "../api/types";
import { RequestError } from "../api/client";
import type { TopicState } from "../live/stream";
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

/** Error of a request, or of the page itself. */
export function ErrorAlert(props: { error: unknown; title?: string }) {
  const { t } = useTexts();
  const { error } = props;
  if (!(error instanceof RequestError)) {
    return <Alert component="p" isInline variant="danger" title={props.title ?? t("error.page")}>{String(error)}</Alert>;
  }
  if (error.isUnreachable) {
    return (
      <Alert component="p" isInline variant="danger" title={t("error.unreachable")}>
        {t("error.unreachable.remedy")}
      </Alert>
    );
  }
  return <ApiErrorAlert errors={error.errors} status={error.status} title={props.title} />;
}

/** Errors of the API, each with its object, field and code. */
export function ApiErrorAlert(props: { errors: readonly ApiError[]; status: number; title?: string }) {
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
        {errors.map((error, index) => (
          <ListItem key={index}>
            <strong>{[error.resource, error.field].filter(Boolean).join(" · ")}</strong>
            {error.resource || error.field ? ": " : ""}
            {error.message} <span className="faint">({error.code})</span>
          </ListItem>
        ))}
      </List>
    </Alert>
  );
}

/** Renders its children when all topics have data. Shows a spinner or the error until then. */
export function WhenLoaded(props: { topics: TopicState<unknown>[]; children: () => ReactNode }) {
  const failedTopic = props.topics.find((topic) => topic.error);
  const isLoaded = props.topics.every((topic) => topic.data !== undefined);
  return (
    <>
      {failedTopic?.error && <ApiErrorAlert errors={failedTopic.error.body?.errors ?? []} status={failedTopic.error.status} />}
      {isLoaded ? props.children() : !failedTopic && <Loading />}
    </>
  );
}
