/** List of names and values. Items that are undefined or false are omitted. */
import { DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm } from "@patternfly/react-core";
import type { ReactNode } from "react";

export function PropertyList(props: { items: ([string, ReactNode] | undefined | false)[]; columns?: 1 | 2 | 3 }) {
  const columns = props.columns ?? 2;
  return (
    <DescriptionList
      isCompact
      isHorizontal={columns === 1}
      columnModifier={{ default: "1Col", md: columns > 1 ? "2Col" : "1Col", xl: columns === 3 ? "3Col" : columns === 2 ? "2Col" : "1Col" }}
    >
      {props.items.map(
        (item) =>
          item && (
            <DescriptionListGroup key={item[0]}>
              <DescriptionListTerm>{item[0]}</DescriptionListTerm>
              <DescriptionListDescription>{item[1] ?? "–"}</DescriptionListDescription>
            </DescriptionListGroup>
          ),
      )}
    </DescriptionList>
  );
}
