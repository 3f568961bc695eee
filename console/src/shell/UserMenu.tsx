/** Menu with language, theme and logout. */
import { Divider, Dropdown, DropdownGroup, DropdownItem, DropdownList, MenuToggle } from "@patternfly/react-core";
import CogIcon from "@patternfly/react-icons/dist/esm/icons/cog-icon";
import { useState } from "react";
import type { Session } from "../api/session";
import { useConnection } from "../live/hooks";
import { useTexts, type Language } from "../texts/texts";
import { updateSettings, useSettings, type Theme } from "./settings";

const THEMES: readonly Theme[] = ["system", "light", "dark"];
/** Languages with their native names. */
const LANGUAGES: readonly [Language, string][] = [["en", "English"], ["ja", "日本語"]];

export function UserMenu(props: { session?: Session; onLogOut?: () => void }) {
  const { t } = useTexts();
  const settings = useSettings();
  const connection = useConnection();
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
            <DropdownItem key={language} lang={language} isSelected={settings.language === language} onClick={() => updateSettings({ language })}>
              {name}
            </DropdownItem>
          ))}
        </DropdownList>
      </DropdownGroup>
      <Divider />
      <DropdownGroup label={t("menu.theme")}>
        <DropdownList>
          {THEMES.map((theme) => (
            <DropdownItem key={theme} isSelected={settings.theme === theme} onClick={() => updateSettings({ theme })}>
              {t(`menu.theme.${theme}`)}
            </DropdownItem>
          ))}
        </DropdownList>
      </DropdownGroup>
      {props.session && (
        <>
          <Divider />
          <DropdownGroup label={t("menu.version", { version: props.session.version, line: t(`connection.${connection.status}`) })}>
            <DropdownList>
              <DropdownItem onClick={props.onLogOut}>{t("menu.logout")}</DropdownItem>
            </DropdownList>
          </DropdownGroup>
        </>
      )}
    </Dropdown>
  );
}
