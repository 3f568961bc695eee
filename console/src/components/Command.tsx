/** CLI command with a copy button. */
import { ClipboardCopy } from "@patternfly/react-core";
import { useTexts } from "../texts/texts";

export function Command(props: { text: string; label?: string }) {
  const { t } = useTexts();
  return (
    <div className="command">
      <span className="command-label">{props.label ?? t("command.same")}</span>
      <ClipboardCopy
        isReadOnly
        isCode
        variant="inline-compact"
        hoverTip={t("command.copy")}
        clickTip={t("command.copied")}
        copyAriaLabel={t("command.copy")}
        truncation={false}
      >
        {props.text}
      </ClipboardCopy>
    </div>
  );
}
