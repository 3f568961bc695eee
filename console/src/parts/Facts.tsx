/** Names and values, side by side. */
import { DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm } from "@patternfly/react-core";
import type { ReactNode } from "react";

export function Facts(props: { of: ([string, ReactNode] | undefined | false)[]; columns?: 1 | 2 | 3 }) {
  const columns = props.columns ?? 2;
  return (
    <DescriptionList
      isCompact
      isHorizontal={columns === 1}
      columnModifier={{ default: "1Col", md: columns > 1 ? "2Col" : "1Col", xl: columns === 3 ? "3Col" : columns === 2 ? "2Col" : "1Col" }}
    >
      {props.of.map(
        (fact) =>
          fact && (
            <DescriptionListGroup key={fact[0]}>
              <DescriptionListTerm>{fact[0]}</DescriptionListTerm>
              <DescriptionListDescription>{fact[1] ?? "–"}</DescriptionListDescription>
            </DescriptionListGroup>
          ),
      )}
    </DescriptionList>
  );
}
