/** Banner that is shown while the connection to the daemon is lost. */
import { Alert } from "@patternfly/react-core";
import { useConnection, useNow } from "../live/hooks";
import { useTexts } from "../texts/texts";
import { duration, timeOfDay } from "../units/units";

export function ConnectionBanner() {
  const connection = useConnection();
  const { t } = useTexts();
  const now = useNow();
  if (connection.status !== "lost" || connection.sinceMs === undefined) return null;
  return (
    <div className="connection-banner" role="status">
      <Alert
        component="p"
        isInline
        variant="warning"
        title={t("connection.stale", { since: timeOfDay(connection.sinceMs), age: duration((now - connection.sinceMs) / 1000) })}
      >
        {t("connection.stale.remedy")}
      </Alert>
    </div>
  );
}
