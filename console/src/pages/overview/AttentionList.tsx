import { Icon } from "@patternfly/react-core";
import CheckCircleIcon from "@patternfly/react-icons/dist/esm/icons/check-circle-icon";
import ExclamationCircleIcon from "@patternfly/react-icons/dist/esm/icons/exclamation-circle-icon";
import ExclamationTriangleIcon from "@patternfly/react-icons/dist/esm/icons/exclamation-triangle-icon";
import InfoCircleIcon from "@patternfly/react-icons/dist/esm/icons/info-circle-icon";
import { useTexts } from "../../texts/texts";
import type { AttentionItem } from "./attention";

const ICONS = { danger: ExclamationCircleIcon, warning: ExclamationTriangleIcon, info: InfoCircleIcon };

export function AttentionList(props: { items: readonly AttentionItem[] }) {
  const { t } = useTexts();
  if (props.items.length === 0) {
    return (
      <p className="row">
        <Icon status="success"><CheckCircleIcon /></Icon> {t("attention.none")}
      </p>
    );
  }
  return (
    <ul className="attention">
      {props.items.map((item, index) => {
        const SeverityIcon = ICONS[item.severity];
        return (
          <li key={index}>
            <Icon status={item.severity}><SeverityIcon aria-label={t(`attention.${item.severity}`)} /></Icon>
            <span>
              <a href={item.href}>{t(item.text, item.params)}</a>
              {item.detail && <span className="faint"> {item.detail}</span>}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
