/** Notifications of completed changes. */
import { Alert, AlertActionCloseButton, AlertGroup } from "@patternfly/react-core";
import { useSyncExternalStore } from "react";
import { useTexts } from "../texts/texts";

interface Toast {
  id: number;
  title: string;
  command: string;
}

let toasts: readonly Toast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function setToasts(newToasts: readonly Toast[]): void {
  toasts = newToasts;
  for (const listener of listeners) listener();
}

export function showToast(title: string, command: string): void {
  lastId += 1;
  setToasts([...toasts.slice(-3), { id: lastId, title, command }]);
}

export function Toasts() {
  const { t } = useTexts();
  const current = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  const close = (id: number) => setToasts(toasts.filter((toast) => toast.id !== id));
  return (
    <AlertGroup hasAnimations isToast isLiveRegion aria-label={t("toasts.label")}>
      {current.map((toast) => (
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
