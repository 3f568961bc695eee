/** A VM's serial console as a terminal in the page. */
import "@xterm/xterm/css/xterm.css";
import { Button } from "@patternfly/react-core";
import { useEffect, useRef, useState } from "react";
import { command } from "../../api/commands";
import { RequestFailed } from "../../api/client";
import { SerialLine } from "../../live/serial";
import { Command } from "../../parts/Command";
import { Section } from "../../parts/Section";
import { Errors } from "../../parts/States";
import { useTexts } from "../../texts/texts";

/** What has ended stays to be read until it is closed. */
type Shown = "closed" | "opening" | "open" | "ended";

export function SerialConsole(props: { vm: string; runs: boolean }) {
  const { t } = useTexts();
  const [shown, setShown] = useState<Shown>("closed");
  const [attempt, setAttempt] = useState(0);
  const [failure, setFailure] = useState<RequestFailed>();
  const screen = useRef<HTMLDivElement>(null);
  const leave = useRef<HTMLButtonElement>(null);
  const isWanted = shown !== "closed";

  useEffect(() => {
    const place = screen.current;
    if (!isWanted || !place) return;
    const gone = new AbortController();
    const ended = (why: RequestFailed) => {
      setFailure(why);
      setShown((before) => (before === "open" ? "ended" : "closed"));
    };
    void openTerminal(props.vm, place, gone.signal, {
      label: t("vm.console.screen", { name: props.vm }),
      onOpen: () => setShown("open"),
      onEnd: ended,
      onLeave: () => leave.current?.focus(),
      // The terminal itself could not be loaded, as from a daemon that is another by now.
    }).catch(() => ended(new RequestFailed(0, [])));
    return () => gone.abort();
  }, [isWanted, attempt, props.vm]);

  const open = () => {
    setFailure(undefined);
    setShown("opening");
    setAttempt(attempt + 1);
  };
  const close = () => {
    setFailure(undefined);
    setShown("closed");
  };
  return (
    <Section
      title={t("vm.console")}
      actions={(
        <>
          {(shown === "closed" || shown === "ended") && (
            <Button size="sm" variant="secondary" isDisabled={!props.runs} onClick={open}>{t("vm.console.open")}</Button>
          )}
          {isWanted && <Button ref={leave} size="sm" variant="secondary" onClick={close}>{t("vm.console.close")}</Button>}
        </>
      )}
    >
      <p>{t(props.runs ? "vm.console.about" : "vm.console.off")}</p>
      {failure && <div className="spaced"><Errors error={failure} title={t("vm.console.ended")} /></div>}
      {isWanted && <div ref={screen} className="serial-screen" data-state={shown} />}
      <div className="spaced"><Command text={command("vm", "console", props.vm)} label={t("vm.console.command")} /></div>
    </Section>
  );
}

interface Terminals {
  label: string;
  onOpen: () => void;
  onEnd: (failure: RequestFailed) => void;
  onLeave: () => void;
}

/** Has a terminal in `place` until it is gone. The terminal is loaded when it is wanted first. */
async function openTerminal(vm: string, place: HTMLElement, gone: AbortSignal, told: Terminals): Promise<void> {
  const [{ Terminal }, { FitAddon }] = await Promise.all([import("@xterm/xterm"), import("@xterm/addon-fit")]);
  if (gone.aborted) return;
  // Screen readers read what is printed.
  const terminal = new Terminal({ screenReaderMode: true, cursorBlink: true, fontSize: 13, scrollback: 5000 });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(place);
  terminal.textarea?.setAttribute("aria-label", told.label);
  fit.fit();
  const resized = new ResizeObserver(() => fit.fit());
  resized.observe(place);
  // As in the command line; Tab is the guest's here.
  terminal.attachCustomKeyEventHandler((key) => {
    if (key.type !== "keydown" || !key.ctrlKey || key.key !== "]") return true;
    key.preventDefault();
    told.onLeave();
    return false;
  });
  const line = new SerialLine(vm, {
    onOpen: told.onOpen,
    onBytes: (bytes) => terminal.write(bytes),
    onEnd: (why) => {
      terminal.options.disableStdin = true;
      terminal.options.cursorBlink = false;
      told.onEnd(why);
    },
  });
  terminal.onData((text) => line.type(text));
  terminal.focus();
  gone.addEventListener("abort", () => {
    line.close();
    resized.disconnect();
    terminal.dispose();
  });
}
