/** A page: its title, what it is about, what can be done, and its content. */
import { Content, Flex, FlexItem, PageSection, Title } from "@patternfly/react-core";
import { useEffect, useRef, type ReactNode } from "react";

/** Whether a page was shown before this one. */
let hasShown = false;

export function PageFrame(props: { title: string; about?: ReactNode; actions?: ReactNode; children: ReactNode }) {
  const heading = useRef<HTMLDivElement>(null);
  useEffect(() => {
    document.title = `${props.title} · Suimon`;
    // Who goes by keyboard or is read to begins at the new page's title; at first, at the page's start.
    if (hasShown) heading.current?.focus();
    hasShown = true;
  }, [props.title]);
  return (
    <>
      <PageSection className="page-head">
        <Flex justifyContent={{ default: "justifyContentSpaceBetween" }} alignItems={{ default: "alignItemsFlexStart" }}>
          <FlexItem className="page-head-title">
            <div ref={heading} tabIndex={-1} className="page-title">
              <Title headingLevel="h1">{props.title}</Title>
            </div>
            {props.about && <Content component="p" className="about">{props.about}</Content>}
          </FlexItem>
          {props.actions && <FlexItem>{props.actions}</FlexItem>}
        </Flex>
      </PageSection>
      <PageSection className="page-body" hasBodyWrapper={false}>{props.children}</PageSection>
    </>
  );
}
