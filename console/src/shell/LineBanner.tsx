/** Says when what is shown is old, because the daemon is not heard. */
import { Alert } from "@patternfly/react-core";
import { useLine, useNow } from "../live/hooks";
import { useTexts } from "../texts/texts";
import { age, clock } from "../units/units";

export function LineBanner() {
  const line = useLine();
  const { t } = useTexts();
  const now = useNow();
  if (line.line !== "lost" || line.sinceMs === undefined) return null;
  return (
    <div className="line-banner" role="status">
      <Alert
        component="p"
        isInline
        variant="warning"
        title={t("line.stale", { since: clock(line.sinceMs), age: age((now - line.sinceMs) / 1000) })}
      >
        {t("line.stale.remedy")}
      </Alert>
    </div>
  );
}
