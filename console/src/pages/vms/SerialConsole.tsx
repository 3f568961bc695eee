/** Serial console of a VM, as a terminal. */
import "@xterm/xterm/css/xterm.css";
import { Button } from "@patternfly/react-core";
import { useEffect, useRef, useState } from "react";
import { command } from "../../api/commands";
import { RequestError } from "../../api/client";
import { SerialConnection } from "../../live/serial";
import { Command } from "../../components/Command";
import { Section } from "../../components/Section";
import { ErrorAlert } from "../../components/States";
import { useTexts } from "../../texts/texts";

/** After the end of the connection (`ended`) the output stays visible until the user closes the console. */
type TerminalState = "closed" | "opening" | "open" | "ended";

export function SerialConsole(props: { vm: string; isRunning: boolean }) {
  const { t } = useTexts();
  const [terminalState, setTerminalState] = useState<TerminalState>("closed");
  const [attempt, setAttempt] = useState(0);
  const [error, setError] = useState<RequestError>();
  const container = useRef<HTMLDivElement>(null);
  const closeButton = useRef<HTMLButtonElement>(null);
  const isVisible = terminalState !== "closed";

  useEffect(() => {
    const element = container.current;
    if (!isVisible || !element) return;
    const controller = new AbortController();
    const handleClose = (closeError: RequestError) => {
      setError(closeError);
      setTerminalState((previous) => (previous === "open" ? "ended" : "closed"));
    };
    void openTerminal(props.vm, element, controller.signal, {
      label: t("vm.console.screen", { name: props.vm }),
      onOpen: () => setTerminalState("open"),
      onClose: handleClose,
      onLeave: () => closeButton.current?.focus(),
      // The terminal module failed to load, for example because the daemon was updated.
    }).catch(() => handleClose(new RequestError(0, [])));
    return () => controller.abort();
  }, [isVisible, attempt, props.vm]);

  const open = () => {
    setError(undefined);
    setTerminalState("opening");
    setAttempt(attempt + 1);
  };
  const close = () => {
    setError(undefined);
    setTerminalState("closed");
  };
  return (
    <Section
      title={t("vm.console")}
      actions={(
        <>
          {(terminalState === "closed" || terminalState === "ended") && (
            <Button size="sm" variant="secondary" isDisabled={!props.isRunning} onClick={open}>{t("vm.console.open")}</Button>
          )}
          {isVisible && <Button ref={closeButton} size="sm" variant="secondary" onClick={close}>{t("vm.console.close")}</Button>}
        </>
      )}
    >
      <p>{t(props.isRunning ? "vm.console.about" : "vm.console.off")}</p>
      {error && <div className="spaced"><ErrorAlert error={error} title={t("vm.console.ended")} /></div>}
      {isVisible && <div ref={container} className="serial-screen" data-state={terminalState} />}
      <div className="spaced"><Command text={command("vm", "console", props.vm)} label={t("vm.console.command")} /></div>
    </Section>
  );
}

interface TerminalOptions {
  label: string;
  onOpen: () => void;
  onClose: (error: RequestError) => void;
  onLeave: () => void;
}

/** Opens a terminal in `element` until `signal` is aborted. Loads the terminal module on first use. */
async function openTerminal(vm: string, element: HTMLElement, signal: AbortSignal, options: TerminalOptions): Promise<void> {
  const [{ Terminal }, { FitAddon }] = await Promise.all([import("@xterm/xterm"), import("@xterm/addon-fit")]);
  if (signal.aborted) return;
  // Makes the output accessible to screen readers.
  const terminal = new Terminal({ screenReaderMode: true, cursorBlink: true, fontSize: 13, scrollback: 5000 });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(element);
  terminal.textarea?.setAttribute("aria-label", options.label);
  fit.fit();
  const resizeObserver = new ResizeObserver(() => fit.fit());
  resizeObserver.observe(element);
  // Control+] leaves the terminal, as in the CLI. Tab is sent to the guest.
  terminal.attachCustomKeyEventHandler((key) => {
    if (key.type !== "keydown" || !key.ctrlKey || key.key !== "]") return true;
    key.preventDefault();
    options.onLeave();
    return false;
  });
  const connection = new SerialConnection(vm, {
    onOpen: options.onOpen,
    onBytes: (bytes) => terminal.write(bytes),
    onClose: (closeError) => {
      terminal.options.disableStdin = true;
      terminal.options.cursorBlink = false;
      options.onClose(closeError);
    },
  });
  terminal.onData((text) => connection.send(text));
  terminal.focus();
  signal.addEventListener("abort", () => {
    connection.close();
    resizeObserver.disconnect();
    terminal.dispose();
  });
}
