/** Frame of a page: title, description, actions and content. */
import { Content, Flex, FlexItem, PageSection, Title } from "@patternfly/react-core";
import { useEffect, useRef, type ReactNode } from "react";

/** True after the first page has been rendered. */
let hasRenderedPage = false;

export function PageFrame(props: { title: string; about?: ReactNode; actions?: ReactNode; children: ReactNode }) {
  const heading = useRef<HTMLDivElement>(null);
  useEffect(() => {
    document.title = `${props.title} · Suimon`;
    // For keyboard and screen reader users, focus moves to the title of a new page, except for the first page.
    if (hasRenderedPage) heading.current?.focus();
    hasRenderedPage = true;
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
