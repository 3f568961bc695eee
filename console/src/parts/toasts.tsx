/** Short messages that something was done. */
import { Alert, AlertActionCloseButton, AlertGroup } from "@patternfly/react-core";
import { useSyncExternalStore } from "react";
import { useTexts } from "../texts/texts";

interface Toast {
  id: number;
  title: string;
  command: string;
}

let toasts: readonly Toast[] = [];
let last = 0;
const listeners = new Set<() => void>();

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

export function tell(title: string, command: string): void {
  last += 1;
  set([...toasts.slice(-3), { id: last, title, command }]);
}

export function Toasts() {
  const { t } = useTexts();
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  const close = (id: number) => set(toasts.filter((toast) => toast.id !== id));
  return (
    <AlertGroup hasAnimations isToast isLiveRegion aria-label={t("toasts.label")}>
      {shown.map((toast) => (
        <Alert
          component="p"
          key={toast.id}
          variant="success"
          title={toast.title}
          timeout={8000}
          onTimeout={() => close(toast.id)}
          actionClose={<AlertActionCloseButton aria-label={t("action.close")} onClose={() => close(toast.id)} />}
        >
          <code>{toast.command}</code>
        </Alert>
      ))}
    </AlertGroup>
  );
}
