import { Icon } from "@patternfly/react-core";
import CheckCircleIcon from "@patternfly/react-icons/dist/esm/icons/check-circle-icon";
import ExclamationCircleIcon from "@patternfly/react-icons/dist/esm/icons/exclamation-circle-icon";
import ExclamationTriangleIcon from "@patternfly/react-icons/dist/esm/icons/exclamation-triangle-icon";
import InfoCircleIcon from "@patternfly/react-icons/dist/esm/icons/info-circle-icon";
import { useTexts } from "../../texts/texts";
import type { Attention } from "./attention";

const ICONS = { danger: ExclamationCircleIcon, warning: ExclamationTriangleIcon, info: InfoCircleIcon };

export function AttentionList(props: { found: readonly Attention[] }) {
  const { t } = useTexts();
  if (props.found.length === 0) {
    return (
      <p className="row">
        <Icon status="success"><CheckCircleIcon /></Icon> {t("attention.none")}
      </p>
    );
  }
  return (
    <ul className="attention">
      {props.found.map((one, at) => {
        const Mark = ICONS[one.severity];
        return (
          <li key={at}>
            <Icon status={one.severity}><Mark aria-label={t(`attention.${one.severity}`)} /></Icon>
            <span>
              <a href={one.href}>{t(one.text, one.params)}</a>
              {one.detail && <span className="faint"> {one.detail}</span>}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
