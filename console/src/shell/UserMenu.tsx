/** Language, theme, and logging out. */
import { Divider, Dropdown, DropdownGroup, DropdownItem, DropdownList, MenuToggle } from "@patternfly/react-core";
import CogIcon from "@patternfly/react-icons/dist/esm/icons/cog-icon";
import { useState } from "react";
import type { Session } from "../api/session";
import { useLine } from "../live/hooks";
import { useTexts, type Language } from "../texts/texts";
import { choose, useSettings, type Theme } from "./settings";

const THEMES: readonly Theme[] = ["system", "light", "dark"];
/** Each language by its own name. */
const LANGUAGES: readonly [Language, string][] = [["en", "English"], ["ja", "日本語"]];

export function UserMenu(props: { session?: Session; onLogOut?: () => void }) {
  const { t } = useTexts();
  const settings = useSettings();
  const line = useLine();
  const [open, setOpen] = useState(false);
  return (
    <Dropdown
      isOpen={open}
      onOpenChange={setOpen}
      onSelect={() => setOpen(false)}
      popperProps={{ position: "right" }}
      toggle={(ref) => (
        <MenuToggle ref={ref} variant="plain" onClick={() => setOpen(!open)} isExpanded={open} aria-label={t("menu.label")} icon={<CogIcon />} />
      )}
    >
      <DropdownGroup label={t("menu.language")}>
        <DropdownList>
          {LANGUAGES.map(([language, name]) => (
            <DropdownItem key={language} lang={language} isSelected={settings.language === language} onClick={() => choose({ language })}>
              {name}
            </DropdownItem>
          ))}
        </DropdownList>
      </DropdownGroup>
      <Divider />
      <DropdownGroup label={t("menu.theme")}>
        <DropdownList>
          {THEMES.map((theme) => (
            <DropdownItem key={theme} isSelected={settings.theme === theme} onClick={() => choose({ theme })}>
              {t(`menu.theme.${theme}`)}
            </DropdownItem>
          ))}
        </DropdownList>
      </DropdownGroup>
      {props.session && (
        <>
          <Divider />
          <DropdownGroup label={t("menu.version", { version: props.session.version, line: t(`line.${line.line}`) })}>
            <DropdownList>
              <DropdownItem onClick={props.onLogOut}>{t("menu.logout")}</DropdownItem>
            </DropdownList>
          </DropdownGroup>
        </>
      )}
    </Dropdown>
  );
}
