/** Card with a title: one section of a page. */
import { Card, CardBody, CardHeader, CardTitle } from "@patternfly/react-core";
import type { ReactNode } from "react";

export function Section(props: { title: ReactNode; actions?: ReactNode; children: ReactNode; id?: string }) {
  return (
    <Card isCompact className="section" id={props.id}>
      <CardHeader actions={props.actions ? { actions: props.actions, hasNoOffset: true } : undefined}>
        <CardTitle component="h2">{props.title}</CardTitle>
      </CardHeader>
      <CardBody>{props.children}</CardBody>
    </Card>
  );
}
